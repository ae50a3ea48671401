# shellcheck shell=bash
# A Debian 12 as an archive of its root folder, for "docker import" where no registry can be reached. Sourced after log.sh
# and cache.sh.

# debian_archive FILE PACKAGE…: makes FILE with these packages, unless it is there.
debian_archive() {
  local archive=$1 root packages
  shift
  [[ ! -s $archive ]] || return 0
  command -v debootstrap >/dev/null || die "debootstrap is not installed: run tools/deps deploy"
  root=$(mktemp -d)
  on_exit rm -rf "$root"
  packages=$(IFS=, && printf '%s' "$*")
  debootstrap --variant=minbase ${packages:+--include="$packages"} bookworm "$root" >&2
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  mkdir -p "${archive%/*}"
  tar -C "$root" -cf "$archive.part" .
  mv "$archive.part" "$archive"
}
