#!/usr/bin/env bash
# Plays a set that is not in the repository, where it is there.
#
#   shared_set.sh FLUXQUEUE DIR [OPTION…]      exit 77, which ctest takes for "skipped", when there is no DIR
set -euo pipefail

if [[ ! -e $2/scenarios.jsonl ]]; then
  echo "skipped: $2 is not there"
  exit 77
fi
fluxqueue=$1
shift
exec "$fluxqueue" conformance "$@" -v
