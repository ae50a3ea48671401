#!/usr/bin/env bash
# Clients in Python against the real matcher: one for each service of the ancestors, generated from the table of names and
# numbers in clients_test.py alone, and listings by reflection.
#
#   tests/rpc/clients_test.sh PROGRAMS
#
# PROGRAMS is the folder of fluxqueue-matcher. The clients' packages come from PyPI, once, into the project's cache.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$here/../../tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$here/../../tools/lib/proc.sh"
# shellcheck source=matcher.sh
. "$here/matcher.sh"

(($# == 1)) || die "usage: tests/rpc/clients_test.sh PROGRAMS"
python=$("$here/python_home.sh")/bin/python
dir=$(stack_dir "$(mktemp -d)")
clean_up() {
  proc_sweep "$dir"
  rm -rf "$dir"
}
on_exit clean_up
MATCHER_IDLE=2s start_matcher "$1" "$dir"
"$python" "$here/clients_test.py" "$(<"$dir/address")" "$dir"
