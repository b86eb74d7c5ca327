//go:build load

package retrypipeline_test

func init() { everyWrite = true }
