package dynamicconfig

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/taskring/taskring/partition"
)

// Constraints say for what an entry holds. A zero field constrains nothing.
type Constraints struct {
	Namespace     string
	TaskQueueName string
	TaskType      partition.TaskType
}

// Hold reports whether the constraints are met by a queue. An empty namespace or
// name and type 0 meet no constraint.
func (c Constraints) Hold(q partition.Queue) bool {
	return (c.Namespace == "" || c.Namespace == q.Namespace) &&
		(c.TaskQueueName == "" || c.TaskQueueName == q.Name) &&
		(c.TaskType == 0 || c.TaskType == q.Type)
}

// Queue returns the most general thing that meets the constraints.
func (c Constraints) Queue() partition.Queue {
	return partition.Queue{Namespace: c.Namespace, Name: c.TaskQueueName, Type: c.TaskType}
}

// String returns the constraints as they are written in a file, "{}" for none.
func (c Constraints) String() string {
	var parts []string
	if c.Namespace != "" {
		parts = append(parts, "namespace: "+quoteText(c.Namespace))
	}
	if c.TaskQueueName != "" {
		parts = append(parts, "taskQueueName: "+quoteText(c.TaskQueueName))
	}
	if c.TaskType != 0 {
		parts = append(parts, "taskType: "+c.TaskType.String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// rank orders entries that hold for the same queue: the higher one wins. The
// package's doc has the table.
type rank uint8

func (c Constraints) rank() rank {
	shape := 0
	for i, set := range []bool{c.TaskType != 0, c.Namespace != "", c.TaskQueueName != ""} {
		if set {
			shape |= 1 << i
		}
	}
	// By shape, with the bits name, namespace, type.
	return [8]rank{
		0b000: 1, 0b001: 2, 0b010: 3, 0b100: 4,
		0b011: 5, 0b101: 6, 0b110: 7, 0b111: 8,
	}[shape]
}

// The words of the file's form.
const (
	wordValue       = "value"
	wordConstraints = "constraints"
	wordNamespace   = "namespace"
	wordQueueName   = "taskQueueName"
	wordTaskType    = "taskType"
)

// check reports what the scope of a setting does not allow.
func (c Constraints) check(scope Scope) error {
	var errs []error
	switch {
	case scope == ScopeGlobal && c != Constraints{}:
		errs = append(errs, errors.New("the setting is global and takes no constraints"))
	case scope == ScopeNamespace && (c.TaskQueueName != "" || c.TaskType != 0):
		errs = append(errs, fmt.Errorf("the setting has one value a namespace and takes no constraint but %s", wordNamespace))
	}
	if c.Namespace != "" {
		if err := partition.ValidateName(c.Namespace); err != nil {
			errs = append(errs, fmt.Errorf("%s %w", wordNamespace, err))
		}
	}
	if c.TaskQueueName != "" {
		if err := partition.ValidateName(c.TaskQueueName); err != nil {
			errs = append(errs, fmt.Errorf("%s %w", wordQueueName, err))
		}
	}
	if c.TaskType != 0 && !c.TaskType.Valid() {
		errs = append(errs, fmt.Errorf("%s %d is not one of workflow, activity, dispatch", wordTaskType, c.TaskType))
	}
	return errors.Join(errs...)
}

// constraints reads what stands under the word "constraints".
func (p *parser) constraints(node *yaml.Node, scope Scope) (Constraints, bool) {
	var c Constraints
	if isNull(node) {
		return c, true
	}
	before := len(p.problems)
	p.mapping(node, []string{wordNamespace, wordQueueName, wordTaskType}, func(word string, value *yaml.Node) {
		switch {
		case scope == ScopeGlobal:
			p.refusef(value, "the setting is global and takes no constraints")
		case scope == ScopeNamespace && word != wordNamespace:
			p.refusef(value, "the setting has one value a namespace and takes no constraint but %s", wordNamespace)
		case word == wordNamespace:
			c.Namespace = p.name(word, value)
		case word == wordQueueName:
			c.TaskQueueName = p.name(word, value)
		default:
			c.TaskType = p.taskType(value)
		}
	})
	return c, len(p.problems) == before
}

func (p *parser) name(word string, node *yaml.Node) string {
	if kind := node.ShortTag(); node.Kind != yaml.ScalarNode || kind == "!!null" {
		p.refusef(node, "%s is %s, not a name", word, say(node))
		return ""
	}
	if err := partition.ValidateName(node.Value); err != nil {
		p.refusef(node, "%s %v", word, err)
		return ""
	}
	return node.Value
}

func (p *parser) taskType(node *yaml.Node) partition.TaskType {
	for t := partition.Workflow; t <= partition.Dispatch; t++ {
		number := strconv.Itoa(int(t))
		if node.Kind == yaml.ScalarNode && (strings.EqualFold(node.Value, t.String()) || node.Value == number) {
			return t
		}
	}
	p.refusef(node, "%s %s is not one of workflow, activity, dispatch%s", wordTaskType, say(node),
		didYouMean(node.Value, []string{partition.Workflow.String(), partition.Activity.String(), partition.Dispatch.String()}))
	return 0
}
