package reload

import "time"

// LookEvery is how often a follower looks unasked.
const LookEvery = 10 * time.Second

func init() { lookEvery = LookEvery }
