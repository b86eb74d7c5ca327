variable "vhost" {
  description = "Virtual host that is made, and the prefix of the users' names."
  type        = string
  default     = "shop"
}

variable "pipelines" {
  description = "Delays and work queues of each pipeline. The routing key of a queue is its name."
  type = map(object({
    delays = list(string)
    queues = list(string)
  }))
  default = {
    orders = {
      delays = ["5s", "30s", "5m"]
      queues = ["orders.created", "orders.paid"]
    }
    mails = {
      delays = ["1m", "1h"]
      queues = ["mails.welcome"]
    }
  }
}

variable "passwords" {
  description = "Passwords of the users. Neither plan nor state contains them."
  type = object({
    publisher = string
    consumer  = string
    sidecar   = string
    operator  = string
  })
  ephemeral = true
}

variable "passwords_version" {
  description = "Number that you increase to send changed passwords."
  type        = number
  default     = 1
}
