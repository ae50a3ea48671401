#!/usr/bin/env bash
# Runs the commands that a README shows in its ```console blocks, in its folder, and compares what they print with what
# stands below them.
#
#   tests/tools/readme_test.sh README BIN     BIN: where the programs are
set -euo pipefail

usage='usage: tests/tools/readme_test.sh README BIN'
readme=$(realpath "${1:?$usage}")
PATH=$(realpath "${2:?$usage}"):$PATH
cd "$(dirname "$readme")"

# The README as it would be if its commands were run now.
run() {
  local line inside=''
  while IFS= read -r line; do
    case $inside$line in
      '```console') inside=yes ;;
      'yes```') inside='' ;;
      'yes$ '*)
        printf '%s\n' "$line"
        bash -c "${line#\$ }" 2>&1 </dev/null || true
        continue
        ;;
      yes*) continue ;;
    esac
    printf '%s\n' "$line"
  done <"$readme"
}

diff -u "$readme" <(run)
