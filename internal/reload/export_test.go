package reload

import "time"

// LookEvery is how often a follower looks without a signal.
const LookEvery = 10 * time.Second

func init() { lookEvery = LookEvery }
