#!/usr/bin/env bash
# Each query of each dashboard has an answer on a system that works: a real Prometheus scrapes the services while jobs
# run, wait, are promised, refused and stopped; the SQL of the job's dashboard runs on the real Postgres. No dashboard or
# rule names a metric that does not exist, no rule fails, and Grafana's own schema takes the files.
#
#   dashboards_test.sh BIN
#
# Needs tools/deps and the packages of tools/packages-deploy.txt. Takes about two minutes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$here/../../tools
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$tools/lib/proc.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$tools/lib/cache.sh"

export FLUXQUEUE_BIN=${1:?usage: dashboards_test.sh BIN}
chart=$here/../../deploy/helm/fluxqueue
dir=$(realpath "$(mktemp -d)")
clean_up() {
  proc_stop "$dir" prometheus || true
  "$tools/stack/stop" "$dir" || true
  rm -rf "$dir"
}
on_exit clean_up

kube() { "$(kubernetes_home "$tools")/kubectl" --kubeconfig "$dir/kubeconfig" "$@"; }
ask() { curl -sSfm 20 -G "http://127.0.0.1:$port/api/v1/$1" "${@:2}"; }
problems=0
problem() { say "$*" && problems=$((problems + 1)); }

start_prometheus() {
  local ports targets='' service
  for service in admission queue matcher binder cleanup graph; do
    read -ra ports <"$dir/config/$service-1.ports"
    targets+="'127.0.0.1:${ports[0]}',"
  done
  cat >"$dir/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 5s}
rule_files: ['$(realpath "$chart/rules")/*.yaml']
scrape_configs: [{job_name: fluxqueue, static_configs: [{targets: [$targets]}]}]
END
  port=$(port_free)
  proc_start "$dir" prometheus prometheus --config.file "$dir/prometheus.yml" --storage.tsdb.path "$dir/tsdb" \
    --web.listen-address "127.0.0.1:$port"
  proc_wait_ready "$dir" prometheus 30 "Prometheus to be ready" curl -sfm 2 "http://127.0.0.1:$port/-/ready"
  wait_until 30 "six services to be scraped" scraped
}
scraped() { ask query --data-urlencode 'query=sum(up)' | jq -e '.data.result[0].value[1] == "6"' >/dev/null; }

# job NAME QUEUE PODS CPU RUN-SECONDS [ANNOTATION: VALUE]
job() {
  cat <<END
apiVersion: batch/v1
kind: Job
metadata: {name: $1, namespace: demo, labels: {fluxqueue.io/queue: $2}, annotations: {fluxqueue.io/duration: ${5}s, ${6:-}}}
spec:
  completions: $3
  parallelism: $3
  template:
    metadata: {annotations: {fluxqueue.io/run-seconds: "$5"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "$4", memory: 1Gi}}}]
---
END
}

# One of each that a dashboard has a panel for.
make_load() {
  local i
  kube apply -f "$tools/../k8s/examples/00-namespace.yaml" >/dev/null
  kube apply -f - >/dev/null <<'END'
apiVersion: fluxqueue.io/v1alpha1
kind: FluxQueue
metadata: {name: batch}
spec: {namespaceSelector: {}, strategy: easy, weight: 3, reservationDepth: 5, budgets: [{resource: cpu, hours: 1000}]}
---
apiVersion: fluxqueue.io/v1alpha1
kind: FluxQueue
metadata: {name: limited}
spec: {namespaceSelector: {}, limits: {perUser: {runningJobs: 1}}}
END
  wait_until 30 "the webhook to know the queues" kube create --dry-run=server -f <(job probe limited 1 1 1) >/dev/null
  {
    job keeps limited 1 1 600
    job limited limited 1 1 1
    job held batch 1 1 1 'fluxqueue.io/hold: "true"'
    job fills batch 4 6 10
    job promised batch 4 6 2
    job stopped default 1 1 600
    job impossible default 1 999 1
    for ((i = 0; i < 12; ++i)); do job "short-$i" default 1 500m 1; done
  } | kube apply -f - >/dev/null
  ! job refused nowhere 1 1 1 | kube apply -f - >/dev/null 2>&1 || die "a job of a queue that does not exist was taken"
  kube -n demo wait --for=jsonpath='{.status.active}'=1 job/stopped --timeout 30s >/dev/null
  kube -n demo wait --for=jsonpath='{.status.phase}'=Running pod -l batch.kubernetes.io/job-name=stopped --timeout 30s >/dev/null
  "$FLUXQUEUE_BIN/fluxqueue" --config "$dir/fluxqueue.yaml" cancel demo/stopped >/dev/null
  kube -n demo wait --for=condition=Complete job/promised --timeout 60s >/dev/null
}

# Grafana's variables, as it would fill them in.
fill_in() {
  sed -E "s/\\\$__rate_interval/30s/g; s/\\\$(pool|queue|component)/.+/g; s/\\\$\{job:sqlstring\}/'$job_id'/g"
}

# A value that is a number, at any time since the load began.
has_data() {
  ask query_range --data-urlencode "query=$1" -d start="$began" -d end="$(date +%s)" -d step=2 |
    jq -e '[.data.result[].values[][1] | select(. != "NaN")] | length > 0' >/dev/null
}

# The queries of panels and variables, with where they stand.
prometheus_queries() {
  jq -r 'input_filename as $file | ($file | split("/") | last) as $name
    | (.panels[] | . as $panel | .targets[]? | select(.expr != null) | [$name, $panel.title, .expr]),
      (.templating.list[] | select(.type == "query" and .datasource.type == "prometheus")
       | [$name, "variable " + .name, (.query | sub("^label_values\\((?<metric>.*), (?<label>.*)\\)$";
          "count by (\(.label)) (\(.metric){\(.label)!=\"\"})"))])
    | @tsv' "$chart"/dashboards/*.json
}

unanswered() {
  local file title query
  while IFS=$'\t' read -r file title query; do
    has_data "$(fill_in <<<"$query")" || printf '%s, %s: no data for %s\n' "$file" "$title" "$query"
  done < <(prometheus_queries)
}
all_answered() { left=$(unanswered) && [[ -z $left ]]; }

# sql ROLE COMMANDS
sql() { psql -XAtd "$(sed "s/fluxqueue@/$1@/" "$dir/postgres/dsn")" -c "$2"; }

# As the role that the chart's README.md makes for Grafana.
check_sql_queries() {
  local query rows
  sql postgres "$(awk '/^```/ { sql = /sql/; next } sql' "$chart/README.md")"
  job_id=$(kube -n demo get job keeps -o 'jsonpath={.metadata.uid}')
  while read -r query; do
    rows=$(sql grafana "$(fill_in <<<"$query")" | wc -l) || rows=0
    ((rows > 0)) || problem "no rows for $query"
  done < <(jq -r '(.panels[].targets[]?.rawSql // empty), (.templating.list[] | select(.type == "query") | .query)' \
    "$chart/dashboards/job.json")
}

# Also those that have no value at the moment.
check_names() {
  local name known
  # shellcheck disable=SC2016
  known=$(sed -n 's/^| `\([a-z_]*\)` | \([a-z]*\) .*/\1 \2/p' "$here/../../deploy/docs/metrics.md" |
    awk '$2 == "histogram" { print $1 "_bucket"; print $1 "_sum"; print $1 "_count"; next } { print $1 }')
  while read -r name; do
    grep -qx "$name" <<<"$known" || problem "there is no metric $name"
  done < <(cat "$chart"/dashboards/*.json "$chart"/rules/*.yaml | grep -oE '\b(fluxqueue|process)_[a-z_0-9]+' | sort -u)
}

check_rules() {
  ask rules | jq -e '[.data.groups[].rules[] | select(.health != "ok")] | length == 0' >/dev/null ||
    problem "rules that fail: $(ask rules | jq -c '[.data.groups[].rules[] | select(.health != "ok") | {name, lastError}]')"
  # It knows how many partitions there are.
  ask query --data-urlencode 'query=ALERTS{alertname="FluxqueueNobodyHolds"}' | jq -e '.data.result == []' >/dev/null ||
    problem "all partitions are held, and FluxqueueNobodyHolds is about to fire"
}

"$tools/dashboards/check"
"$tools/stack/start" "$dir" --nodes 4 --test --parent $$
start_prometheus
began=$(date +%s)
make_load
check_names
check_rules
check_sql_queries
# Some things are counted every 10 s.
wait_until 60 "every query to have data" all_answered || problem "$left"
((problems == 0)) || die "$problems problems"
say "$(prometheus_queries | wc -l) queries of $(find "$chart/dashboards" -name '*.json' | wc -l) dashboards have data"
