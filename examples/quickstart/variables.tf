variable "vhost" {
  description = "Virtual host of the work queue and of the pipeline."
  type        = string
  default     = "/"
}

variable "delays" {
  description = "Delays before attempts 2, 3, 4 and so on."
  type        = list(string)
  default     = ["5s", "30s", "5m"]
}
