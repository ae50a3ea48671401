#!/usr/bin/env bash
# What tools/images writes with --out: the same bytes from another folder, at another time, by another engine; digests that
# the chart takes; and whose the files of each image are, as packages for scanners and as a bill of materials.
#
#   tests/deploy/images_test.sh BIN      BIN: the folder of the programs
#
# Needs root, tools/deps deploy. What checks the bills comes from PyPI, once, into the project's cache.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
tools=$repository/tools
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$tools/lib/cache.sh"
# shellcheck source=../../tools/lib/docker.sh
. "$tools/lib/docker.sh"
# shellcheck source=../../tools/lib/python.sh
. "$tools/lib/python.sh"
# shellcheck source=../tools/checks.sh
. "$repository/tests/tools/checks.sh"

readonly IMAGES=(admission binder cleanup cli graph matcher queue visibility)
bin=$(realpath "${1:?usage: tests/deploy/images_test.sh BIN}")
root=$(mktemp -d)
clean_up() {
  "$tools/docker/stop" "$root/docker" || true
  "$tools/docker/stop" "$root/other-docker" || true
  rm -rf "$root"
}
on_exit clean_up
FLUXQUEUE_CACHE=$(fluxqueue_cache)
export FLUXQUEUE_CACHE GIT_OPTIONAL_LOCKS=0

# build ENGINE TREE PROGRAMS OUT [IMAGE…]: with an engine that has built nothing yet.
build() {
  "$tools/docker/start" "$root/$1" --parent $$
  DOCKER_HOST=$(<"$root/$1/host") "$2/tools/images" --programs "$3" --out "$4" "${@:5}"
}

# The same checkout and programs, copied: other names, times and rights. One image has the layers of all, and its own.
build_elsewhere() {
  umask 077
  mkdir -p "$root/else where/tree" "$root/programs"
  git -C "$repository" ls-files -z --cached --others --exclude-standard -- ':!tests' |
    tar -C "$repository" --null --files-from - --ignore-failed-read -c | tar -C "$root/else where/tree" -x --touch --no-same-permissions
  cp "$bin"/fluxqueue{,-admission,-queue,-matcher,-binder,-cleanup,-visibility,-graph,-fluxion-host} "$root/programs/"
  GIT_DIR=$(git -C "$repository" rev-parse --absolute-git-dir) GIT_WORK_TREE=$repository TZ=Asia/Tokyo LC_ALL=C.UTF-8 \
    build other-docker "$root/else where/tree" "$root/programs" "$root/again" cleanup
}

same_bytes() {
  cmp "$root/out/cleanup.spdx.json" "$root/again/cleanup.spdx.json"
  diff <(grep -e tag: -e cleanup: "$root/out/values.yaml") <(grep -e tag: -e cleanup: "$root/again/values.yaml")
}

blob() { printf '%s/layout/blobs/%s' "$root" "${1/://}"; }
tag() { sed -n 's/^  tag: //p' "$root/out/values.yaml"; }
digest() { sed -n "s/^    $1: //p" "$root/out/values.yaml"; }

# Each layer over the one before, as a node does it.
unpack() {
  local image layer
  mkdir "$root/layout"
  tar -C "$root/layout" -xf "$root/out/images.tar"
  for image in "${IMAGES[@]}"; do
    mkdir "$root/$image"
    for layer in $(jq -r '.layers[].digest' "$(blob "$(digest "$image")")"); do
      tar -C "$root/$image" -xzf "$(blob "$layer")"
    done
  done
}

# A registry names an image by the digest of its manifest, an engine by that of its configuration.
digests() {
  local image name
  DOCKER_HOST=$(<"$root/docker/host") docker load --input "$root/out/images.tar"
  for image in "${IMAGES[@]}"; do
    name=localhost/fluxqueue/$image:$(tag)
    [[ sha256:$(sha256sum <"$(blob "$(digest "$image")")" | cut -d' ' -f1) == "$(digest "$image")" ]]
    [[ $(jq -r --arg name "$name" '.manifests[] | select(.annotations["io.containerd.image.name"] == $name).digest' \
      "$root/layout/index.json") == "$(digest "$image")" ]]
    [[ $(DOCKER_HOST=$(<"$root/docker/host") docker image inspect --format '{{.Id}}' "$name") == \
      "$(jq -r .config.digest "$(blob "$(digest "$image")")")" ]]
  done
  DOCKER_HOST=$(<"$root/docker/host") docker run --rm "localhost/fluxqueue/cleanup:$(tag)" --version
}

chart_takes_them() {
  local image made
  made=$("$(helm_home "$tools")/helm" template fluxqueue "$repository/deploy/helm/fluxqueue" --namespace fluxqueue-system \
    --set image.registry=registry.example,kafka.bundled.enabled=true,postgres.bundled.enabled=true --values "$root/out/values.yaml")
  for image in "${IMAGES[@]}"; do
    grep -qF "image: registry.example/fluxqueue/$image:$(tag)@$(digest "$image")" <<<"$made"
  done
}

# Every library is some package's, with the version that this machine has, its licence, and nothing changed. All images have
# the same ones.
packages() {
  local entry name
  cd "$root/queue"
  grep -qx 'ID=debian' etc/os-release
  for entry in var/lib/dpkg/status.d/*.md5sums; do
    entry=${entry%.md5sums}
    name=${entry##*/}
    [[ $(sed -n 's/^Package: //p;s/^Version: //p' "$entry" | xargs) == "$name $(dpkg-query -W -f '${Version}' "$name")" ]] ||
      die "$entry is not that of the package"
    cmp "/usr/share/doc/$name/copyright" "usr/share/doc/$name/copyright"
    md5sum --quiet --check "$entry.md5sums"
  done
  find usr/lib lib64 etc/os-release etc/ssl -type f | sort |
    diff - <(cat var/lib/dpkg/status.d/*.md5sums | cut -c35- | grep -E '^(usr/lib|lib64|etc)/' | sort) || die "files without a package"
}

# The bill holds what SPDX 2.3 asks of it, and every file of the image, as it is.
bill() {
  local image=$1 own=usr/share/doc/fluxqueue-$1/sbom.spdx.json
  "$python/pyspdxtools" --version SPDX-2.3 --infile "$root/out/$image.spdx.json"
  cmp "$root/out/$image.spdx.json" "$root/$image/$own"
  (cd "$root/$image" && find . -type f ! -path "./$own" -exec sha256sum {} + | sort -k2) >"$root/$image.files"
  jq -r '.files[] | select(.SPDXID != "SPDXRef-File-tools-librdkafka-fixes.patch")
    | "\(.checksums[] | select(.algorithm == "SHA256").checksumValue)  \(.fileName)"' "$root/out/$image.spdx.json" |
    sort -k2 | diff - "$root/$image.files" || die "the bill of $image has other files than the image"
}

# Who the bill says has mended librdkafka, and how.
bill_of_librdkafka() {
  jq -e --arg sum "$(sha256sum <"$tools/librdkafka/fixes.patch" | cut -d' ' -f1)" '
    (.packages[] | select(.name == "librdkafka") | .sourceInfo | contains("4381") and contains("4528") and contains("4895")) and
    (.files[] | select(.fileName == "./tools/librdkafka/fixes.patch").checksums | any(.checksumValue == $sum)) and
    any(.relationships[]; .relationshipType == "PATCH_APPLIED" and .relatedSpdxElement == "SPDXRef-Package-librdkafka") and
    any(.relationships[]; .relationshipType == "STATIC_LINK" and .relatedSpdxElement == "SPDXRef-Package-librdkafka")' \
    "$root/out/queue.spdx.json"
}

bills() {
  local image
  python=$(python_home spdx "$here/requirements.txt")/bin
  for image in "${IMAGES[@]}"; do
    bill "$image"
    grep -q librdkafka "$root/$image/usr/share/doc/fluxqueue-$image/copyright"
  done
  bill_of_librdkafka
}

# A library that somebody has built by hand has no version that anybody could look up.
strangers() {
  mkdir "$root/by-hand"
  cp /usr/lib/x86_64-linux-gnu/libpq.so.5 "$root/by-hand/"
  LD_LIBRARY_PATH=$root/by-hand SOURCE_DATE_EPOCH=0 "$repository/deploy/images/collect" "$bin" "$root/collected"
}

# librdkafka_with VERSION: what is said where this is Debian's.
librdkafka_with() {
  printf '#!/bin/sh\necho "  Candidate: %s"\n' "$1" >"$root/apt/apt-cache"
  PATH=$root/apt:$PATH "$tools/librdkafka/check" 2>&1
}

# Ours is named as it is, and it is said when it can go.
librdkafka() {
  local request
  mkdir "$root/apt"
  : >"$root/apt/apt-cache"
  chmod +x "$root/apt/apt-cache"
  for request in $(tr '\n' ' ' <"$tools/librdkafka/fixes.patch" | grep -oE 'pull +request +[0-9]+' | grep -oE '[0-9]+'); do
    grep -qF "librdkafka/pull/$request)" "$tools/librdkafka/README.md" || die "README.md has nothing of $request"
  done
  [[ $(librdkafka_with 2.0.2-1) == "ok "*"still without the pull requests 4528 4895 4381)" ]]
  [[ $(librdkafka_with 2.0.2-1+deb12u1) == *"see in its changelog whether it has the pull requests 4528 4895 4381"* ]]
  [[ $(librdkafka_with 2.5.0-1) == *"see in its changelog whether it has the pull requests 4895 "* ]]
  [[ $(librdkafka_with 2.8.0-1) == *"with all that fixes.patch mends"* ]]
  [[ $(librdkafka_with '(none)') == "skip "* ]]
}

steps_log_dir "$root/logs"
step "Debian's librdkafka" librdkafka
step_async "images" build docker "$repository" "$bin" "$root/out"
step_async "the same elsewhere" build_elsewhere
steps_wait
step "the same bytes" same_bytes
step "unpacked" unpack
step "digests" digests
step "the chart takes them" chart_takes_them
step "packages" packages
step "bills of materials" bills
refused "a library of no package" "no Debian package has $root/by-hand/libpq.so.5" strangers
