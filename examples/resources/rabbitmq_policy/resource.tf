resource "rabbitmq_policy" "size" {
  name       = "size"
  pattern    = "^orders\\."
  apply_to   = "queues"
  definition = { max-length-bytes = 1000000000 }
}
