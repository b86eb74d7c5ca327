resource "rabbitmq_operator_policy" "size" {
  name       = "size"
  pattern    = ".*"
  definition = { max-length = 1000000 }
}
