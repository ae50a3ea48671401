#!/usr/bin/env bash
# Clients in Python against the real matcher: one for each service of the ancestors, generated from the table of names and
# numbers in clients_test.py alone, and listings by reflection.
#
#   tests/rpc/clients_test.sh PROGRAMS
#
#   PROGRAMS  the folder of fluxqueue-matcher
#
# The matcher runs without Kafka and PostgreSQL: private graphs need neither. The clients' packages come from PyPI, once, into
# the project's cache.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$here/../../tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$here/../../tools/lib/proc.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$here/../../tools/lib/cache.sh"

(($# == 1)) || die "usage: tests/rpc/clients_test.sh PROGRAMS"
program=$(realpath "$1")/fluxqueue-matcher
[[ -x $program ]] || die "$program is not built"

python=$("$here/python_home.sh")/bin/python
dir=$(stack_dir "$(mktemp -d)")
clean_up() {
  proc_sweep "$dir"
  rm -rf "$dir"
}
on_exit clean_up
mkdir -p "$dir/logs"

cat >"$dir/matcher.yaml" <<END
instance: matcher-1
http: {port: 0}
postgres: {dsn: "host=127.0.0.1 port=1 connect_timeout=2"}
kafka: {bootstrap: "127.0.0.1:1"}
matcher:
  grpc: {port: 0}
  private_graphs: {limit: 8, idle: 2s}
END
proc_start "$dir" matcher "$program" --config "$dir/matcher.yaml"
address() { sed -n 's/.*serving gRPC address=\([^ ]*\).*/\1/p' "$dir/logs/matcher.log"; }
serving() { [[ -n $(address) ]]; }
proc_wait_ready "$dir" matcher 20 "the matcher to serve gRPC" serving

"$python" "$here/clients_test.py" "$(address)" "$dir"
