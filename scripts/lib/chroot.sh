# shellcheck shell=bash
# Debian chroots with Debian's RabbitMQ releases: one folder per release, built once.

newest=4.3 # the release of tests that ask for none

# Prints the chroot to run this release in; nothing if the installed package is of that release. Fails if there is none.
root_with() { # VERSION
  if [[ $(installed_version) == "$1".* ]]; then
    :
  elif can_apt_install; then
    chroot_with "$1"
  else
    say "RabbitMQ $1 is not installed here, and only root on Debian or Ubuntu can build a chroot with it"
    return 1
  fi
}

# Prints the chroot's path; builds it if need be.
chroot_with() { # VERSION
  local cache suites suite root
  case $1 in
    3.10) suites=bookworm ;;
    4.0) suites=trixie ;;
    4.3) suites='testing sid' ;; # which one has it changes
    *) die "no Debian suite is known for RabbitMQ $1 (3.10, 4.0 and 4.3 are); start a Docker engine" ;;
  esac
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/terraform-provider-rabbitmq
  root=$cache/rabbitmq-$1
  mkdir -p "$cache"
  (
    flock 9 # two runs must not build the same chroot
    [[ ! -e $root ]] || exit 0
    command -v debootstrap >/dev/null || apt_install debootstrap debian-archive-keyring || exit
    for suite in $suites; do
      build_chroot "$suite" "$root.partial"
      [[ $(chroot_version "$root.partial") == "$1".* ]] || continue
      mv "$root.partial" "$root"
      exit 0
    done
    die "Debian's $suites has RabbitMQ $(chroot_version "$root.partial"), not $1"
  ) 9>"$root.lock" >&2 || return
  echo "$root"
}

chroot_version() { dpkg-query --admindir "$1/var/lib/dpkg" --show --showformat '${Version}' rabbitmq-server; }

build_chroot() { # SUITE FOLDER
  say "building a Debian $1 chroot with RabbitMQ (once, about a minute)"
  rm -rf --one-file-system "$2"
  # debootstrap mounts /proc in the new folder; in namespaces of its own the mount ends with the process in any case.
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc \
    debootstrap --variant=minbase --include=rabbitmq-server "$1" "$2" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$2.log" 2>&1 </dev/null || {
    tail -n 10 "$2.log" >&2
    die "debootstrap $1 failed; its log is $2.log"
  }
  echo '127.0.0.1 localhost' >"$2/etc/hosts"
  rm -rf "$2"/var/cache/apt/archives/*.deb "$2"/var/lib/apt/lists/* "$2.log"
}
