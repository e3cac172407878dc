package client_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

// discovered is a source of members of one's own: a service registry, say, that
// tells of each change.
type discovered struct {
	view     atomic.Pointer[ring.Ring]
	complete chan struct{}
	once     sync.Once
	builder  *ring.Builder
}

func newDiscovered() *discovered {
	builder, err := ring.NewBuilder(ring.DefaultFormat())
	if err != nil {
		panic(err) // the default format is valid
	}
	return &discovered{complete: make(chan struct{}), builder: builder}
}

func (d *discovered) View() *ring.Ring { return d.view.Load() }

func (d *discovered) Complete() <-chan struct{} { return d.complete }

// members is called with all of them, by one goroutine, whenever they change.
func (d *discovered) members(all []ring.Node) {
	view, err := d.builder.Build(all)
	if err != nil {
		fmt.Println(err) // and go on with the last good one
	}
	d.view.Store(view)
	d.once.Do(func() { close(d.complete) })
}

// A ring of one's own: calls wait until the first complete list of members is
// there, and from then on follow it.
func ExampleRing() {
	members := newDiscovered()
	spread := &client.QueueSettings{Spread: route.SpreadBy(2)}
	c, err := client.NewClient(client.Options{Ring: members, Queues: func(partition.Queue) *client.QueueSettings { return spread }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Stop()
	mails := partition.Queue{Namespace: "default", Name: "mails", Type: partition.Activity}
	if _, err := c.Route(mails.Partition(0)); err != nil {
		fmt.Println(err)
	}
	members.members([]ring.Node{
		{Name: "node-a", Weight: 1, Address: "10.0.0.1:7233"},
		{Name: "node-b", Weight: 1, Address: "10.0.0.2:7233"},
	})
	first, _ := c.Route(mails.Partition(0))
	second, _ := c.Route(mails.Partition(1))
	fmt.Println("partitions 0 and 1 are kept apart:", first != second)
	// Output:
	// routing default/mails (activity) #0: the members of the cluster are not known yet
	// partitions 0 and 1 are kept apart: true
}

// How calls look to their callers, in a meter of one's own.
func ExampleNewMetricClient() {
	node := startNode()
	defer node.stop()
	reader := sdkmetric.NewManualReader() // an exporter, in a program
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("my-frontend")
	c, err := client.NewClient(client.Options{Addresses: []string{"10.0.0.1:7233"}, DialOptions: node.dial, Meter: meter})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Stop()
	measured, err := client.NewMetricClient(c, client.MetricOptions{Meter: meter, Queues: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = measured.AddTask(context.Background(), &matchingpb.AddTaskRequest{
		TaskQueue: &matchingpb.TaskQueuePartition{Namespace: "default", Name: "mails"},
	})
	var got metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &got)
	for _, m := range got.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "taskring.client.duration" {
			queue, _ := h.DataPoints[0].Attributes.Value("queue")
			fmt.Println(m.Name, "of queue", queue.AsString(), "counted", h.DataPoints[0].Count)
		}
	}
	// Output: taskring.client.duration of queue mails counted 1
}
