package queue

import _ "testing"
