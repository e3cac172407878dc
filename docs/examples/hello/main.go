// Command hello adds a task to a queue and works on it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := client.NewClient(client.Options{Addresses: []string{"127.0.0.1:7233"}})
	if err != nil {
		return err
	}
	defer c.Stop() // lets calls that run finish, then closes the connections

	queue := partition.Queue{Namespace: "default", Name: "hello", Type: partition.Activity}
	add := &matchingpb.AddTaskRequest{TaskQueue: wire.EncodeQueue(queue), Payload: []byte("world")}
	if _, err := c.AddTask(ctx, add); err != nil {
		return err
	}
	worker, err := client.NewWorker(c, client.WorkerOptions{
		Queue: queue,
		Handler: func(_ context.Context, t *client.Task) error {
			fmt.Printf("hello, %s\n", t.Payload)
			stop()     // a worker goes on until its context ends
			return nil // completes the task
		},
	})
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}
