resource "rabbitmq_parameter" "both" {
  component = "federation-upstream-set"
  name      = "both"
  value = [
    { upstream = "north" },
    { upstream = "south" },
  ]
}
