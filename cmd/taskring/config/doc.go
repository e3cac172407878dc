// Package config is `taskring config`: looking at dynamic-config files before and
// after they tune a cluster, and at the settings of running nodes.
//
//	validate FILE     everything that is wrong with a file, for a check before it is rolled out
//	explain KEY       which value holds for a task queue, which entry gave it, and why
//	diff OLD NEW      what a change of the file would change
//	show              the values in force at a node and their hash, or those of a file
//	preview FILE      which partitions a gradual change of routing moves, and when
//	docs              the page of all settings
//
// What is printed about a file is made by the very code with which a node reads
// it, so both agree.
package config
