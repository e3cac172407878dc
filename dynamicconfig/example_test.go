package dynamicconfig_test

import (
	"fmt"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/partition"
)

var longPoll = dynamicconfig.PerQueue(dynamicconfig.Duration{
	Key:     "matching.longPollExpirationInterval",
	Default: time.Minute, Min: time.Second, Max: 5 * time.Minute,
	Doc: "How long a poll waits before it is answered empty.",
})

func Example() {
	registry, err := dynamicconfig.NewRegistry(longPoll)
	if err != nil {
		fmt.Println(err)
		return
	}
	snapshot, err := registry.Parse([]byte(`
matching.longPollExpirationInterval:
  - value: 30s
  - value: 2m
    constraints: {namespace: shop}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(longPoll.Get(snapshot, partition.Queue{Namespace: "shop", Name: "orders", Type: partition.Activity}))
	fmt.Println(longPoll.Get(snapshot, partition.Queue{Namespace: "bank", Name: "orders", Type: partition.Activity}))
	fmt.Println(longPoll.Get(nil, partition.Queue{}))

	_, err = registry.Parse([]byte("matching.longPolExpirationInterval: 30"))
	fmt.Println(err)
	// Output:
	// 2m0s
	// 30s
	// 1m0s
	// line 1, column 1: "matching.longPolExpirationInterval" is not a setting, did you mean "matching.longPollExpirationInterval"?
}

// A change that moves partitions goes over an hour, each queue at its own time.
func ExampleGradual() {
	start := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	batch, err := dynamicconfig.ChangeBetween(0, 8, start, start.Add(time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, queue := range []string{"orders", "letters"} {
		key := dynamicconfig.QueueKey(partition.Queue{Namespace: "shop", Name: queue, Type: partition.Activity})
		flip, _ := batch.When(key)
		fmt.Println(key, flip.Format("15:04:05"), batch.Value(key, start.Add(20*time.Minute)))
	}
	// Output:
	// shop:orders:2 10:17:02 8
	// shop:letters:2 10:42:52 0
}
