# shellcheck shell=bash
# Installing packages on Debian and Ubuntu.

can_apt_install() { ((EUID == 0)) && command -v apt-get >/dev/null; }

apt_install() { # PACKAGE...
  say "installing $*"
  (
    exec 9>/var/lock/terraform-provider-rabbitmq-apt
    flock 9
    # Debian starts a broker on the default ports as soon as its package is installed; ours are private.
    policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
      trap 'rm -f "$policy"' EXIT
      printf '#!/bin/sh\nexit 101\n' >"$policy"
      chmod +x "$policy"
    fi
    export DEBIAN_FRONTEND=noninteractive
    log=$(apt-get update -qq 2>&1 </dev/null &&
      apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" 2>&1 </dev/null) || {
      tail -n 20 <<<"$log" >&2
      die "apt-get could not install $*"
    }
  )
}
