package matching

// Config is documented, and so has each of its fields to be.
type Config struct {
	// Listen is host:port.
	Listen string
	Lanes  int // lanes, by default 1
	hidden int

	Wait string `want "exported name Wait has no doc comment: say its unit"`
}

type Server struct { // want "exported name Server has no doc comment: say what it is"
	Name string
}

func (s *Server) Start() {} // want "exported name Start has no doc comment"

func (s *Server) stop() {}

type hidden struct{}

func (hidden) String() string { return "" }

func New() *Server { return nil } // want "exported name New has no doc comment: say what it does"

// Store is documented, but not all of its methods are.
type Store interface {
	// Commit is documented.
	Commit()
	Read(id struct { // want "exported name Read has no doc comment: say what it promises"
		number int
	})
}

// Reader is the part of [store.Store] that reads.
type Reader interface {
	Read()
}

// Codes are documented as a group.
const (
	CodeA = 1
	CodeB = 2
)

const Limit = 3 + // want "exported name Limit has no doc comment: say what it means"
	4
