package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestReal(t *testing.T) {
	time.Sleep(time.Millisecond) // want "a real sleep: wait for the event itself"
	<-time.After(time.Second)    // want "a real sleep"
	select {
	case <-time.After(time.Second):
	default:
	}
}

func TestVirtual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		<-time.After(time.Hour)
	})
	synctest.Test(t, named)
}

func named(t *testing.T) { time.Sleep(time.Hour) }

// settle lets an hour pass.
//
//arch:bubble every caller runs in synctest
func settle() { time.Sleep(time.Hour) }

//arch:bubble
func unreasoned() { time.Sleep(time.Hour) } // want "a real sleep"
