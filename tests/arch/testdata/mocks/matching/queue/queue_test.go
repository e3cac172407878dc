package queue

import _ "github.com/stretchr/testify/suite" // want "testify/suite has no place here"

type mockStore struct{} // want "type mockStore is a mock"

type fakeStore struct{}
