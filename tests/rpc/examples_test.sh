#!/usr/bin/env bash
# Makes the calls that services/graph/API.md shows, against a graph service, and compares what they print with what stands below
# them. Times are not compared.
#
#   tests/rpc/examples_test.sh PROGRAMS [--update]
#
# PROGRAMS is the folder of fluxqueue-graph; --update writes what they print into API.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(realpath "$here/../..")
# shellcheck source=../../tools/lib/log.sh
. "$repository/tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$repository/tools/lib/proc.sh"
# shellcheck source=graph.sh
. "$here/graph.sh"

usage='usage: tests/rpc/examples_test.sh PROGRAMS [--update]'
(($# == 1)) || [[ $# == 2 && $2 == --update ]] || die "$usage"
page=$repository/services/graph/API.md
dir=$(stack_dir "$(mktemp -d)")
clean_up() {
  proc_sweep "$dir"
  rm -rf "$dir"
}
on_exit clean_up
start_graph "$1" "$dir"

# As if in the folder of the graphs, with a file for the key; `grpc` is tools/grpc.
cp -r "$repository/k8s/examples/graphs" "$dir/examples"
mkdir "$dir/bin"
cat >"$dir/bin/grpc" <<END
#!/bin/sh
exec "$repository/tools/grpc" "\$@"
END
chmod +x "$dir/bin/grpc"
FLUXQUEUE_GRPC=$(<"$dir/address")
export FLUXQUEUE_GRPC
without_times() { sed -E 's/("overhead": )("[0-9.]+s"|[0-9.e-]+)/\1…/'; }
cp "$page" "$dir/examples/API.md"
if (($# == 2)); then
  "$repository/tests/tools/readme_test.sh" "$dir/examples/API.md" "$dir/bin" >"$dir/diff" || true
  patch --quiet "$page" "$dir/diff"
  exit
fi
"$repository/tests/tools/readme_test.sh" "$dir/examples/API.md" "$dir/bin" | without_times >"$dir/diff" || true
# What differs in times only is the same on both sides now.
diff <(sed -n 's/^-\([^-]\)/\1/p' "$dir/diff") <(sed -n 's/^+\([^+]\)/\1/p' "$dir/diff")
