#!/usr/bin/env bash
# deploy/docs/metrics.md is what the services say, and the dashboards are what their descriptions say.
#
#   metrics_test.sh BIN
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$here/../../tools/lib/log.sh"
root=$here/../..
export FLUXQUEUE_BIN=${1:?usage: metrics_test.sh BIN}

diff "$root/deploy/docs/metrics.md" <("$root/tools/services/metrics") ||
  die "deploy/docs/metrics.md (<) is not what the services say (>): run tools/services/metrics"
"$root/tools/dashboards/generate" --check
