# shellcheck shell=bash
# RabbitMQ from its official container images.

container='' container_conf='' # its id; a file with more lines for its rabbitmq.conf

docker_answers() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

image_with() { # VERSION
  docker image inspect "rabbitmq:$1-management" >/dev/null 2>&1 || docker pull --quiet "rabbitmq:$1-management" >&2
}

start_container() { # IMAGE
  local deadline=$((SECONDS + 120))
  command -v curl >/dev/null || die "curl is needed"
  stop=stop_container username=test password=$(random)
  container_conf=$(mktemp "${TMPDIR:-/tmp}/rabbitmq-conf.XXXXXX")
  ((${#conf[@]} == 0)) || printf '%s\n' "${conf[@]}" >"$container_conf"
  chmod 644 "$container_conf" # the broker is another user
  container=$(docker run --detach --rm --publish 127.0.0.1::5672 --publish 127.0.0.1::15672 \
    --volume "$container_conf:/etc/rabbitmq/conf.d/90-set.conf:ro" \
    --env RABBITMQ_DEFAULT_USER="$username" --env RABBITMQ_DEFAULT_PASS="$password" \
    --env RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$erl_args" "$1") || die "docker could not run $1"
  endpoint=http://$(docker port "$container" 15672/tcp | head -n 1)
  uri=amqp://$username:$password@$(docker port "$container" 5672/tcp | head -n 1)
  broker="container of $1"
  until api_answers "$endpoint"; do
    ((SECONDS < deadline)) || { docker logs --tail 20 "$container" >&2 && die "the container of $1 did not start"; }
    sleep 0.5
  done
  docker exec "$container" rabbitmq-plugins enable --quiet "${plugins[@]}" >&2
}

stop_container() {
  [[ -z $container ]] || docker rm --force --volumes "$container" >/dev/null
  rm -f "$container_conf"
}
