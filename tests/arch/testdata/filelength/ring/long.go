package ring // want "the file has 13 lines, the limit is 12: split it by idea"











//
