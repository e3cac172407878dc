package partition

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrBadName is matched by every error of [ParseRPCName].
var ErrBadName = errors.New("not the name of a partition")

// ParseRPCName reads the form that [ID.RPCName] writes: a bare queue name is the
// root, "/_sys/<queue>/<number>" another partition. Queue names may hold slashes,
// so the number stands behind the last one.
//
// It is strict: each partition has exactly one name. A number that is missing, 0
// (the root has the bare name), not decimal, signed, with a leading zero or above
// 2^31-1 is refused, and so is a queue or namespace that [Queue.Validate] refuses.
//
//	orders            partition 0 of orders
//	/_sys/orders/3    partition 3 of orders
//	/_sys/a/b/12      partition 12 of a/b
//	/_sys/7/7         partition 7 of 7
//	/_sys/orders      refused: no number
//	/_sys/orders/0    refused: the root is called orders
//	/_sys/orders/03   refused: leading zero
//	/_sys//3          refused: no queue name
func ParseRPCName(namespace, rpcName string, t TaskType) (ID, error) {
	p := Queue{Namespace: namespace, Name: rpcName, Type: t}.Partition(0)
	if rest, child := strings.CutPrefix(rpcName, ReservedPrefix); child {
		slash := strings.LastIndexByte(rest, '/')
		if slash < 0 {
			return ID{}, fmt.Errorf("%w: %q lacks the number: it has to be %s<queue>/<number>", ErrBadName, rpcName, ReservedPrefix)
		}
		n, err := parseNumber(rest[slash+1:])
		if err != nil {
			return ID{}, fmt.Errorf("%w: %q: %w", ErrBadName, rpcName, err)
		}
		p.Name, p.Number = rest[:slash], n
	}
	if err := p.Validate(); err != nil {
		return ID{}, fmt.Errorf("%w: %q: %w", ErrBadName, rpcName, err)
	}
	return p, nil
}

// parseNumber reads the number of a partition other than the root.
func parseNumber(s string) (int32, error) {
	switch {
	case s == "":
		return 0, errors.New("the number is missing")
	case s == "0":
		return 0, errors.New("number 0 is the root, which bears the bare queue name")
	case s[0] == '0':
		return 0, fmt.Errorf("number %q has a leading zero", s)
	case strings.Trim(s, "0123456789") != "":
		return 0, fmt.Errorf("number %q is not made of decimal digits", s)
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("number %s is above the highest, %d", s, math.MaxInt32)
	}
	return int32(n), nil
}
