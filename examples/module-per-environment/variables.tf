variable "staging_vhost" {
  description = "Virtual host of the staging environment."
  type        = string
  default     = "staging"
}

variable "production_vhost" {
  description = "Virtual host of the production environment."
  type        = string
  default     = "/"
}
