# shellcheck shell=bash
# A private RabbitMQ node: loopback ports, a temporary folder, and nothing left when it has ended.

conf=()                    # more lines for rabbitmq.conf
erl_args=''                # more arguments for Erlang
node_pid='' node_folder='' # the leader of the node's process group; where its data and logs are

# The packages' plain start script. Their wrapper in /usr/sbin would change to another user.
installed_server() {
  if [[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]]; then
    echo /usr/lib/rabbitmq/bin/rabbitmq-server
  else
    command -v rabbitmq-server
  fi
}

installed_version() {
  installed_server >/dev/null || return 0
  dpkg-query --show --showformat '${Version}' rabbitmq-server 2>/dev/null || true
}

free_port() { # below the range that systems take for outgoing connections
  local port
  while port=$((20000 + RANDOM % 12000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  echo "$port"
}

random() { od -An -N12 -tx1 /dev/urandom | tr -d ' \n'; }

need_curl() { command -v curl >/dev/null || { can_apt_install && apt_install curl; } || die "curl is needed"; }

start_node() { # [CHROOT]
  local attempt
  need_curl
  stop=stop_node username=test password=$(random)
  for attempt in 1 2 3; do # somebody else may take one of the ports in the meantime
    launch_node "$@"
    await_node && return
    say "the node did not start (attempt $attempt); the end of its log:"
    tail -qn 15 "$node_folder"/out "$node_folder"/log/*.log >&2 2>/dev/null || true
    stop_node
  done
  die "RabbitMQ did not start"
}

# A node of this name with free ports of its own, to be run by `"${enter[@]}" env -i "${settings[@]}" "$server"`. Sets also
# `home`, which is the folder as the node sees it, `endpoint` and `uri`.
describe_node() { # FOLDER NAME EPMD_PORT [CHROOT]
  local root=${4:-} amqp mgmt keeper=()
  amqp=$(free_port) mgmt=$(free_port)
  endpoint=http://127.0.0.1:$mgmt uri=amqp://$username:$password@127.0.0.1:$amqp
  home=${root:+/mnt} home=${home:-$1}

  cat >"$1/rabbitmq.conf" <<CONF
listeners.tcp.default = 127.0.0.1:$amqp
management.tcp.ip = 127.0.0.1
management.tcp.port = $mgmt
default_user = $username
default_pass = $password
log.console = false
CONF
  ((${#conf[@]} == 0)) || printf '%s\n' "${conf[@]}" >>"$1/rabbitmq.conf"
  (IFS=, && echo "[${plugins[*]}].") >"$1/enabled_plugins"
  # For the name of its cluster, a node looks its host up each time; if no resolver knows the host, that takes 5 seconds.
  echo "{lookup, [file, native]}. {host, {127,0,0,1}, [\"$(hostname)\"]}." >"$1/inetrc"
  settings=(
    HOME="$home" PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH" LANG=C.UTF-8 LC_ALL=C.UTF-8
    ERL_EPMD_PORT="$3" RABBITMQ_DIST_PORT="$(free_port)" RABBITMQ_NODENAME="$2"
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}$erl_args"
    ERL_INETRC="$home/inetrc" RABBITMQ_CONFIG_FILE="$home/rabbitmq.conf" RABBITMQ_CONF_ENV_FILE=/dev/null
    RABBITMQ_ENABLED_PLUGINS_FILE="$home/enabled_plugins"
    RABBITMQ_MNESIA_BASE="$home/db" RABBITMQ_LOG_BASE="$home/log" RABBITMQ_PID_FILE="$home/pid"
  )
  # As root the node gets namespaces of its own: mounts are never seen outside, and the kernel ends every process in
  # there with the first one, even if this script is killed.
  if ((EUID == 0)) && unshare --mount --pid --fork --mount-proc true 2>/dev/null; then
    keeper=(setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc="$root/proc")
  elif [[ -n $root ]]; then
    die "a chroot needs the right to make mount namespaces (CAP_SYS_ADMIN)"
  fi
  enter=("${keeper[@]}")
  if [[ -n $root ]]; then
    # shellcheck disable=SC2016 # for that sh to expand
    enter+=(sh -c 'mount --bind "$1" "$0/mnt" && mount --rbind /dev "$0/dev" && shift && exec chroot "$0" "$@"' "$root" "$1")
    server=/usr/lib/rabbitmq/bin/rabbitmq-server
    broker="private node in $root"
  else
    server=$(installed_server)
    broker="private node"
  fi
}

launch_node() { # [CHROOT]
  node_folder=$(mktemp -d "${TMPDIR:-/tmp}/rabbitmq-node.XXXXXX")
  # The name is unique, because the broker refuses one that its epmd knows already.
  describe_node "$node_folder" "test-$$-$RANDOM@localhost" "$(free_port)" "$@"
  # Our own epmd, in the foreground: the one that RabbitMQ starts is a daemon that outlives it.
  cat >"$node_folder/start" <<'SH'
epmd -port "$ERL_EPMD_PORT" -address 127.0.0.1 &
until epmd -names >/dev/null 2>&1; do kill -0 $! && sleep 0.1 || exit; done
exec "$1"
SH
  set -m # a process group of its own: Ctrl-C is for the command, and `kill` finds all of the node
  "${enter[@]}" env -i "${settings[@]}" sh "$home/start" "$server" \
    >"$node_folder/out" 2>&1 </dev/null &
  node_pid=$!
  set +m
}

await_node() {
  local deadline=$((SECONDS + 60))
  until api_answers "$endpoint"; do
    kill -0 "$node_pid" 2>/dev/null && ((SECONDS < deadline)) || return 1
    sleep 0.2
  done
}

# The node's log outlives it.
keep_log() {
  local kept
  [[ -n $node_folder ]] || return 0
  kept=$(log_file rabbitmq).gz
  cat "$node_folder"/log/*.log | gzip >"$kept"
  say "what RabbitMQ logged is in $kept"
}

# Killed at once: its data is not needed any more.
stop_node() {
  if [[ -n $node_pid ]]; then
    kill -KILL -- "-$node_pid" 2>/dev/null || true
    wait "$node_pid" 2>/dev/null || true
    while kill -0 -- "-$node_pid" 2>/dev/null; do sleep 0.05; done
  fi
  [[ -z $node_folder ]] || rm -rf "$node_folder"
  node_pid='' node_folder=''
}
