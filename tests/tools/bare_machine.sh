#!/usr/bin/env bash
# Proves the tools on a bare Debian 12: makes one with debootstrap (minbase) in a folder, clones what is committed here into
# it, and runs commands there. Nothing of this machine is seen from inside but its kernel, its network, and how it reaches
# the package registries.
#
#   tests/tools/bare_machine.sh [--dir DIR] [COMMAND…]
#
#   --dir DIR   keep the machine there, or go on with the one that is there; default: a temporary one
#   COMMAND     one shell line each, run in the clone; default: the two that the README promises, and what CI runs
#
# The control groups are this machine's: Docker and the kubelet of the tests make theirs there, and take them away.
#
# Needs root, debootstrap, and 12 GB. Not part of CI: from nothing it takes the better part of an hour on two cores.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$repository/tools/lib/log.sh"

((EUID == 0)) || die "only root can make and enter the machine"
command -v debootstrap >/dev/null || die "debootstrap is not installed: apt-get install debootstrap"
machine=''
if [[ ${1:-} == --dir ]]; then
  machine=$(realpath -m "${2:?--dir wants a folder}")
  shift 2
fi
commands=("$@")
((${#commands[@]})) || commands=('tools/up' 'tools/up' 'tools/down --purge' '.ci/run')

# Mounts live in a namespace of their own, and so do processes: all of them go with the command. The machine becomes the root
# of that namespace, not only of its processes (chroot): whoever enters a container there would else see this machine.
inside() {
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --mount-proc="$machine/proc" bash -euc '
    mount --rbind "$0" "$0"
    mount --rbind /dev "$0/dev"
    mount --rbind /sys "$0/sys"
    mount -t tmpfs tmpfs "$0/tmp"
    cd "$0"
    pivot_root . mnt
    umount --lazy mnt
    exec chroot . /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin CI=true \
      PIP_CERT=/etc/ssl/certs/ca-certificates.crt ${GOPROXY:+GOPROXY="$GOPROXY"} \
      bash -c "cd /root/fluxqueue 2>/dev/null || cd /; $1"' "$machine" "$1" </dev/null
}

copy_if_there() {
  local path
  for path in "$@"; do
    [[ ! -e $path ]] || { mkdir -p "$machine$(dirname "$path")" && cp -aT "$path" "$machine$path"; }
  done
}

make_machine() {
  local mirror
  mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources | head -n 1)
  debootstrap --variant=minbase bookworm "$machine" "$mirror"
  rm -f "$machine/etc/apt/sources.list"
  copy_if_there /etc/apt/sources.list.d/debian.sources /etc/resolv.conf /etc/hosts /etc/pip.conf \
    /usr/local/share/ca-certificates /root/.m2/settings.xml
}

if [[ -z $machine ]]; then
  machine=$(mktemp -d)
  on_exit rm -rf --one-file-system "$machine"
fi
[[ -e $machine/etc/debian_version ]] || step "bare Debian 12" make_machine
rm -rf "$machine/root/fluxqueue"
git clone -q --no-hardlinks "$repository" "$machine/root/fluxqueue"
for command in "${commands[@]}"; do
  begun=$(now_ms)
  say "bare machine: $command"
  inside "$command" || die "'$command' failed after $(elapsed "$begun")"
  say "bare machine: $command ($(elapsed "$begun"))"
done
