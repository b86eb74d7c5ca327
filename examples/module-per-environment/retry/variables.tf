variable "vhost" {
  description = "Virtual host of the work queues and of the pipeline."
  type        = string
}

variable "delays" {
  description = "Delays before attempts 2, 3, 4 and so on; the last one repeats."
  type        = list(string)
}

variable "max_attempts" {
  description = "Deliveries in total, the first one included. Default: one more than there are delays."
  type        = number
  default     = null
}

variable "queues" {
  description = "Quorum queues whose rejected messages are retried."
  type        = set(string)
  default     = ["orders.created", "orders.paid"]
}
