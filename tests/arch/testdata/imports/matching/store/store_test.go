package store_test

import _ "github.com/taskring/taskring/matching/store/storetest"
