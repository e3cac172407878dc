package cluster

import _ "testing"
