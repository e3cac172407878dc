package server

import "net"

func listen() {
	net.Listen("tcp", "127.0.0.1:0")
	net.Listen("tcp", "127.0.0.1:7233") // want "a fixed port: listen on port 0"
	net.ListenPacket("udp", ":7946")    // want "a fixed port"
}
