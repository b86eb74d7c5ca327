package delaying

// HeaderDelay is how many milliseconds a message waits. Once it has waited, the number is negative.
const HeaderDelay = "x-delay"
