package partition

import _ "pgregory.net/rapid"
