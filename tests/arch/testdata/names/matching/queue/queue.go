package queue

type QueueManager struct{} // want "type name QueueManager ends in Manager"

type (
	storeImpl struct{} // want "storeImpl ends in Impl"
	dataset   struct{}
)
