data "rabbitmq_dead_letter_audit" "main" {
  vhost = "/"

  # Failed messages are kept for two weeks on purpose.
  ignore = ["parking-queue-ttl"]
}

# A warning in every plan and apply while a message could get lost. The data source stands outside of the block:
# within it, Terraform counts every read as a change, and plan -detailed-exitcode always returns 2.
check "dead_letters" {
  assert {
    condition = data.rabbitmq_dead_letter_audit.main.error_count == 0
    error_message = join("\n", [
      for f in data.rabbitmq_dead_letter_audit.main.findings :
      "${f.object.kind} ${f.object.name}: ${f.message} ${f.remedy} (${f.rule})" if f.severity == "error"
    ])
  }
}

# A warning while messages wait in an inbox without a consumer, most often because worker.json was not deployed.
check "sidecar" {
  assert {
    condition     = !contains(data.rabbitmq_dead_letter_audit.main.findings[*].rule, "inbox-unserved")
    error_message = "Messages wait for a sidecar. Deploy the current worker.json."
  }
}
