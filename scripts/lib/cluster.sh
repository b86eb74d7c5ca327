# shellcheck shell=bash
# A private cluster of three nodes, each as in node.sh, with one epmd and one Erlang cookie.

cluster='' # the folder; in it one per node, named 1, 2 and 3
endpoints=() uris=()
cluster_pids=() # of epmd, and of what keeps each node

start_cluster() { # CHROOT ADVANCED_CONFIG
  local attempt
  need_curl
  stop=stop_cluster username=test password=$(random)
  for attempt in 1 2 3; do # somebody else may take one of the ports in the meantime
    launch_cluster "$@"
    await_cluster && return
    say "the cluster did not start (attempt $attempt); the ends of its logs:"
    tail -qn 10 "$cluster"/*/out "$cluster"/*/log/*.log >&2 2>/dev/null || true
    stop_cluster
  done
  die "the cluster did not start"
}

launch_cluster() { # CHROOT ADVANCED_CONFIG
  local n name epmd_port cookie
  name=test-$$-$RANDOM epmd_port=$(free_port) cookie=$(random) endpoints=() uris=()
  cluster=$(mktemp -d "${TMPDIR:-/tmp}/rabbitmq-cluster.XXXXXX")
  for n in 1 2 3; do
    mkdir "$cluster/$n"
    mkfifo "$cluster/$n/start"
    (umask 377 && echo "$cookie" >"$cluster/$n/.erlang.cookie")
    describe_node "$cluster/$n" "$name-$n@localhost" "$epmd_port" "$1"
    printf 'cluster_formation.classic_config.nodes.%d = %s\n' 1 "$name-1@localhost" 2 "$name-2@localhost" 3 "$name-3@localhost" \
      >>"$cluster/$n/rabbitmq.conf"
    # The links between nodes are cut, too. The metadata of RabbitMQ before Khepri survives it in this mode alone.
    echo 'cluster_partition_handling = pause_minority' >>"$cluster/$n/rabbitmq.conf"
    [[ -z $2 ]] || cp "$2" "$cluster/$n/advanced.config"
    [[ -z $2 ]] || settings+=(RABBITMQ_ADVANCED_CONFIG_FILE="$home/advanced.config")
    endpoints+=("$endpoint") uris+=("$uri")
    [[ $n != 1 ]] || launch_epmd "$epmd_port"
    write_scripts "$cluster/$n"
    setpriv --pdeathsig KILL "$cluster/$n/keep" >/dev/null 2>&1 </dev/null &
    cluster_pids+=("$!")
    echo >"$cluster/$n/start"
  done
}

# Of its own, because it has to outlive each node.
launch_epmd() { # PORT
  "${enter[@]}" env -i "${settings[@]}" epmd -port "$1" -address 127.0.0.1 >/dev/null 2>&1 </dev/null &
  cluster_pids+=("$!")
}

# For the node that was described last: `ctl`, its rabbitmqctl, and `keep`, which starts the node each time that somebody
# writes to `start`.
write_scripts() { # FOLDER
  local inside
  printf -v inside '%q ' "${enter[@]}" env -i "${settings[@]}"
  printf '#!/usr/bin/env bash\n%s %q "$@"\n' "$inside" "$(dirname "$server")/rabbitmqctl" >"$1/ctl"
  cat >"$1/keep" <<SH
#!/usr/bin/env bash
set -m # a process group of its own, so that kill finds all of the node
cd "\${0%/*}"
while read -r <start; do
  $inside $server >>out 2>&1 </dev/null &
  echo "\$!" >group
  while kill -0 "\$!"; do # or it is only stopped
    wait "\$!"
    sleep 0.1
  done
  rm group
done
SH
  chmod 700 "$1/ctl" "$1/keep"
}

await_cluster() {
  local endpoint deadline=$((SECONDS + 120))
  for endpoint in "${endpoints[@]}"; do
    until api_answers "$endpoint" && [[ $(api "$endpoint" nodes | grep -o '"running":true' | wc -l) == 3 ]]; do
      ((SECONDS < deadline)) || return 1
      sleep 0.5
    done
  done
}

# Killed at once: its data is not needed any more.
stop_cluster() {
  local file pid
  ((${#cluster_pids[@]} == 0)) || kill -KILL "${cluster_pids[@]}" 2>/dev/null || true
  for pid in "${cluster_pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  for file in "$cluster"/*/group; do # of nodes that run
    [[ -e $file ]] && pid=$(<"$file") || continue
    kill -KILL -- "-$pid" 2>/dev/null || true
    while kill -0 -- "-$pid" 2>/dev/null; do sleep 0.05; done
  done
  [[ -z $cluster ]] || rm -rf "$cluster"
  cluster='' cluster_pids=()
}

# What the nodes logged outlives the cluster.
keep_logs() {
  local kept n
  kept=$(log_file rabbitmq)
  for n in 1 2 3; do
    cat "$cluster/$n"/log/*.log >"$kept.$n" || true
  done
  say "what the nodes logged is in $kept.1, .2 and .3"
}
