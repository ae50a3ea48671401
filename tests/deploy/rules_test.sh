#!/usr/bin/env bash
# The rules mean what they should, each alert is tested, and has a runbook that exists; no runbook is without its alert.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$here/../../tools/lib/log.sh"
root=$here/../..
rules=$root/deploy/helm/fluxqueue/rules/fluxqueue.yaml

promtool check rules "$rules"
promtool test rules "$here/rules_test.yaml"

mapfile -t alerts < <(sed -n 's/^ *- alert: //p' "$rules")
((${#alerts[@]} > 0)) || die "$rules has no alerts"
for alert in "${alerts[@]}"; do
  grep -q "alertname=\"$alert\"" "$here/rules_test.yaml" || die "$alert is not tested: add a case to rules_test.yaml"
  grep -q "runbook_url: deploy/docs/runbooks/$alert.md$" "$rules" || die "$alert names no runbook deploy/docs/runbooks/$alert.md"
done
diff <(printf '%s.md\n' "${alerts[@]}" | sort) <(cd "$root/deploy/docs/runbooks" && printf '%s\n' *.md | sort) ||
  die "alerts (<) and runbooks (>) are not the same"

# What is silent because its metric is not there is no proof: the system that is well has them all.
well=$(sed -n '/name: all is well/,/promql_expr_test/p' "$here/rules_test.yaml")
while read -r metric; do
  grep -q "$metric" <<<"$well" || die "the case 'all is well' has no $metric"
done < <(grep -o 'fluxqueue_[a-z0-9_]*' "$rules" | sort -u)
say "${#alerts[@]} alerts, each tested and with its runbook"
