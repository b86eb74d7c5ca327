# shellcheck shell=bash
# How with-broker and with-cluster log, run a command, and stop what they started.

say() { echo "${0##*/}: $*" >&2; }
die() {
  say "$@"
  exit 1
}

# The path of a file for what somebody logged, in the folder that `make clean` removes.
log_file() { # NAME
  local folder
  folder=$(dirname "${BASH_SOURCE[0]}")/../../bin/logs
  mkdir -p "$folder"
  echo "$(cd "$folder" && pwd)/$1-$$.log"
}

stop=: # what ends everything that was started

stop_at_exit() {
  trap 'trap "" INT TERM HUP; $stop' EXIT # not cut short by a second Ctrl-C
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

# The command runs in the background of this script but in the foreground of the terminal, so that a signal can be handled
# here at once, while Ctrl-C reaches the command without our help.
run() {
  local code command interrupted=''
  { true <&0; } 2>/dev/null || exec </dev/null
  (
    trap - INT QUIT TERM HUP EXIT
    exec "$@"
  ) <&0 &
  command=$!
  trap 'interrupted=1; kill -TERM "$command" 2>/dev/null || true' TERM HUP
  # Without a terminal nobody else has signalled the command.
  trap 'interrupted=1; [[ -t 0 || -t 2 ]] || kill -INT "$command" 2>/dev/null || true' INT
  while :; do
    code=0 interrupted=''
    wait "$command" || code=$?
    [[ -n $interrupted ]] || return "$code" # else a signal cut `wait` short
  done
}
