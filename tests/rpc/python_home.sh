#!/usr/bin/env bash
# Says where the Python environment of requirements.txt is, and makes it if it is not there yet.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$here/../../tools/lib/log.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$here/../../tools/lib/cache.sh"

home=$(cache_key python-grpc "$(sed -n 's/^grpcio==//p' "$here/requirements.txt")" "$here/requirements.txt")
cache_lock python-grpc
if [[ ! -e $home/done ]]; then
  rm -rf "$home"
  python3 -m venv "$home" >&2
  "$home/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt" >&2
  : >"$home/done"
fi
printf '%s\n' "$home"
