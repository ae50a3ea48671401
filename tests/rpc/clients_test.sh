#!/usr/bin/env bash
# Clients in Python against the real graph service: one for each service of the ancestors, generated from the table of names and
# numbers in clients_test.py alone, and listings by reflection.
#
#   tests/rpc/clients_test.sh PROGRAMS
#
# PROGRAMS is the folder of fluxqueue-graph. The clients' packages come from PyPI, once, into the project's cache.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$here/../../tools/lib/log.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$here/../../tools/lib/cache.sh"
# shellcheck source=../../tools/lib/python.sh
. "$here/../../tools/lib/python.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$here/../../tools/lib/proc.sh"
# shellcheck source=graph.sh
. "$here/graph.sh"

(($# == 1)) || die "usage: tests/rpc/clients_test.sh PROGRAMS"
python=$(python_home grpc "$here/requirements.txt")/bin/python
dir=$(stack_dir "$(mktemp -d)")
clean_up() {
  proc_sweep "$dir"
  rm -rf "$dir"
}
on_exit clean_up
GRAPH_IDLE=2s start_graph "$1" "$dir"
"$python" "$here/clients_test.py" "$(<"$dir/address")" "$dir"
