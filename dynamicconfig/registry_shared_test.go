package dynamicconfig

import "testing"

// TestSharedSetting: a setting that two packages list is one; another one of its
// key is refused as ever.
func TestSharedSetting(t *testing.T) {
	shared := Global(Int{Key: "test.shared", Doc: "A number."})
	r, err := NewRegistry(shared, Global(Int{Key: "test.other", Doc: "Another."}), shared)
	if err != nil || len(r.Settings()) != 2 {
		t.Errorf("a setting that is listed twice: %v", err)
	}
	if _, err := NewRegistry(shared, Global(Int{Key: "test.shared", Doc: "A number."})); err == nil {
		t.Error("two settings of one key are taken")
	}
}
