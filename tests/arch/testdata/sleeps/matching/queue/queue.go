package queue

import "time"

func wait() { time.Sleep(time.Second) } // want "a real sleep"
