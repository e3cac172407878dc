package server

import "net"

var listener, _ = net.Listen("tcp", "127.0.0.1:7233")
