import {
  to = rabbitmq_user.worker
  id = "retry" # The name
}
