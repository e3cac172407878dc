package queue // want "a mock file: write a small fake by hand"

import _ "go.uber.org/mock/gomock" // want "gomock has no place here"
