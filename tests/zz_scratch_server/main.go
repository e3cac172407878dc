// Command scratch is a throw-away load test.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/taskring/taskring/matching"
	"github.com/taskring/taskring/matching/matchingpb"
)

func main() {
	producers := flag.Int("p", 16, "")
	workers := flag.Int("w", 16, "")
	batch := flag.Int("b", 1, "")
	dur := flag.Duration("d", 5*time.Second, "")
	prof := flag.String("prof", "", "")
	flag.Parse()
	dir, _ := os.MkdirTemp("", "scratch")
	defer os.RemoveAll(dir)
	n, err := matching.New(matching.Config{DataDir: dir, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0"})
	if err != nil {
		panic(err)
	}
	n.Start(context.Background())
	conn, _ := grpc.NewClient(n.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	c := matchingpb.NewMatchingServiceClient(conn)
	if *prof != "" {
		f, _ := os.Create(*prof)
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	ctx, cancel := context.WithTimeout(context.Background(), *dur)
	defer cancel()
	q := &matchingpb.TaskQueuePartition{Namespace: "default", Name: "q", Partition: new(int32)}
	payload := make([]byte, 256)
	var added, done, errs atomic.Int64
	var wg sync.WaitGroup
	for range *producers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if *batch == 1 {
					_, err := c.AddTask(ctx, &matchingpb.AddTaskRequest{TaskQueue: q, Payload: payload})
					if err == nil {
						added.Add(1)
					} else if ctx.Err() == nil {
						errs.Add(1)
						fmt.Println(err)
					}
					continue
				}
				b := &matchingpb.AddBatch{TaskQueue: q}
				for range *batch {
					b.Payloads = append(b.Payloads, payload)
				}
				r, err := c.AddTasks(ctx, &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{b}})
				if err == nil {
					added.Add(int64(len(r.Results[0].Ids)))
				} else if ctx.Err() == nil {
					errs.Add(1)
					fmt.Println(err)
				}
				if err == nil && (r.Results[0].Error != nil || len(r.Results[0].Errors) > 0) {
					fmt.Println(r.Results[0].Error, r.Results[0].Errors)
				}
			}
		})
	}
	for range *workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				r, err := c.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: q, MaxTasks: int32(*batch), Format: matchingpb.GrantFormat_GRANT_FORMAT_COLUMNS})
				if err != nil {
					continue
				}
				for _, g := range r.Batches {
					if cr, err := c.CompleteTasks(ctx, &matchingpb.CompleteTasksRequest{Batches: []*matchingpb.GrantRefs{{StoreId: g.StoreId, Partition: g.Partition, Epoch: g.Epoch, Ids: g.Ids, Deliveries: g.Deliveries}}}); err == nil {
						done.Add(int64(len(g.Ids) - len(cr.Results[0].Errors)))
						if cr.Results[0].Error != nil || len(cr.Results[0].Errors) > 0 {
							fmt.Println(cr.Results[0])
						}
					} else if ctx.Err() == nil {
						errs.Add(1)
						fmt.Println(err)
					}
				}
			}
		})
	}
	wg.Wait()
	s := dur.Seconds()
	fmt.Printf("added/s %.0f done/s %.0f errs %d\n", float64(added.Load())/s, float64(done.Load())/s, errs.Load())
	dp, _ := c.DescribePartition(context.Background(), &matchingpb.DescribePartitionRequest{TaskQueue: q})
	fmt.Println(dp.GetPartition().GetStats())
	t := time.Now()
	fmt.Println("stop:", n.Stop(context.Background()), time.Since(t))
}
