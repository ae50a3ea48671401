#!/usr/bin/env bash
# The real parts as tools/kafka, tools/postgres and tools/cluster start and stop them: they start side by side, do their
# work, keep their data over a restart, recover from kill -9, say what is wrong with bad input, and leave nothing behind.
#
#   tests/tools/stack_test.sh
#
# Needs tools/deps. Takes about a minute.
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$tools/lib/proc.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$tools/lib/cache.sh"
# shellcheck source=checks.sh
. "$tools/../tests/tools/checks.sh"

root=$(mktemp -d)
parts=(kafka postgres cluster)
clean_up() {
  local part
  for part in "${parts[@]}"; do
    "$tools/$part/stop" "$root/$part" || true
  done
  rm -rf "$root"
}
on_exit clean_up

start() {
  case $1 in
    kafka) "$tools/kafka/start" "$root/kafka" "${@:2}" ;;
    postgres) "$tools/postgres/start" "$root/postgres" --unsafe-no-fsync "${@:2}" ;;
    cluster) "$tools/cluster/start" "$root/cluster" --unsafe-no-fsync --nodes 3 "${@:2}" ;;
  esac
}

start_all() {
  local part
  for part in "${parts[@]}"; do
    step_async "start $part" start "$part" "$@"
  done
  steps_wait
}

stop_all() {
  local part
  for part in "${parts[@]}"; do
    step_async "stop $part" "$tools/$part/stop" "$root/$part"
  done
  steps_wait
}

kube() {
  "$(kubernetes_home "$tools")/kubectl" --kubeconfig "$root/cluster/kubeconfig" --request-timeout 10s "$@"
}
sql() {
  psql -qXAt -v ON_ERROR_STOP=1 "$(cat "$root/postgres/dsn")" -c "$1"
}

processes() {
  local part
  for part in "${parts[@]}"; do
    proc_others "$(realpath -m "$root/$part")"
  done
}

workloads_run() {
  kube apply -f - >/dev/null <<'END'
apiVersion: batch/v1
kind: Job
metadata: {name: three}
spec:
  completions: 3
  parallelism: 3
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two-seconds, annotations: {fluxqueue.io/run-seconds: "2"}}
spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
---
apiVersion: v1
kind: Pod
metadata: {name: fails, annotations: {fluxqueue.io/run-seconds: "250ms", fluxqueue.io/exit: fail}}
spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
---
apiVersion: v1
kind: Pod
metadata: {name: stays}
spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
END
  eventually 30 "a pod with run-seconds runs" Running kube get pod two-seconds -o 'jsonpath={.status.phase}'
  # A change of the pod while it runs must not start its time anew.
  kube annotate pod two-seconds changed=yes >/dev/null
  eventually 30 "a Job of three pods completes" 3 kube get job three -o 'jsonpath={.status.succeeded}'
  eventually 30 "the pod ends" Succeeded kube get pod two-seconds -o 'jsonpath={.status.phase}'
  expect "it has run for two seconds" 2 "$(kube get pod two-seconds -o json | jq '
    .status.containerStatuses[0].state.terminated | (.finishedAt | fromdate) - (.startedAt | fromdate)')"
  eventually 30 "a pod that is to fail fails" Failed kube get pod fails -o 'jsonpath={.status.phase}'
  expect "a pod without an annotation stays" Running "$(kube get pod stays -o 'jsonpath={.status.phase}')"
}

ready_of() {
  kube get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
}

nodes_are_lost() {
  kube annotate node node-1 fluxqueue.io/kwok=not-ready >/dev/null
  eventually 20 "a node that says so is not Ready" False ready_of node-1
  kube annotate node node-1 fluxqueue.io/kwok- >/dev/null
  eventually 20 "and is Ready again" True ready_of node-1
  kube annotate node node-2 fluxqueue.io/kwok=silent >/dev/null
  eventually 40 "a silent node is lost" Unknown ready_of node-2
  kube annotate node node-2 fluxqueue.io/kwok- >/dev/null
  eventually 20 "and comes back" True ready_of node-2
}

kill_one() {
  kill -KILL "$(cat "$root/$1/logs/$2.pid")"
}

data_survives() {
  local bootstrap dsn
  bootstrap=$(cat "$root/kafka/bootstrap") dsn=$(cat "$root/postgres/dsn")
  sql 'CREATE TABLE kept AS SELECT 42 AS answer'
  stop_all
  expect "nothing runs after stop" '' "$(processes)"
  start_all --parent $$
  expect "Kafka's address after a restart" "$bootstrap" "$(cat "$root/kafka/bootstrap")"
  expect "PostgreSQL's address after a restart" "$dsn" "$(cat "$root/postgres/dsn")"
  expect "PostgreSQL's rows" 42 "$(sql 'SELECT answer FROM kept')"
  expect "the cluster's objects" 3 "$(kube get job three -o 'jsonpath={.status.succeeded}')"
  kill_one kafka kafka
  kill_one postgres postgres
  kill_one cluster kube-apiserver
  kill_one cluster kwok
  start_all
  expect "PostgreSQL's rows after kill -9" 42 "$(sql 'SELECT answer FROM kept')"
  expect "the cluster's objects after kill -9" 3 "$(kube get job three -o 'jsonpath={.status.succeeded}')"
}

bad_input_is_refused() {
  local port
  port=$(cut -d: -f2 "$root/kafka/bootstrap")
  refused "a port in use (PostgreSQL)" "port $port, wanted for PostgreSQL, is in use" \
    "$tools/postgres/start" "$root/other" --port "$port"
  refused "a port in use (API server)" "port $port, wanted for the API server, is in use" \
    "$tools/cluster/start" "$root/other" --port "$port"
  refused "a port that is none" "port 'x'" "$tools/kafka/start" "$root/other" --port x
  refused "an unknown option" "unknown option '--prot'" "$tools/kafka/start" "$root/other" --prot 1
  refused "two brokers" "--brokers 2: wanted 1, or a number from 3 to 9" "$tools/kafka/start" "$root/other" --brokers 2
  refused "three brokers where one is" "$root/kafka holds one broker, and stays so" start kafka --brokers 3
  "$tools/kafka/stop" "$root/kafka"
  echo nonsense >"$root/kafka/data/meta.properties"
  refused "data that Kafka cannot read" "node ID not found" start kafka
  expect "nothing runs after a failed start" '' "$(proc_others "$(realpath "$root/kafka")")"
  rm -r "$root/kafka/data"
  start kafka
}

# Last: the process that was given as --parent dies, here a sleep.
dead_parent_leaves_nothing() {
  local part parent
  sleep 1000 &
  parent=$!
  for part in "${parts[@]}"; do
    "$tools/$part/stop" "$root/$part"
  done
  start_all --parent $parent
  kill -KILL $parent
  wait $parent 2>/dev/null || true
  eventually 30 "nothing runs after the death of the parent" '' processes
}

start_all --parent $$
step "start all again" start_all
workloads_run
data_survives
bad_input_is_refused
dead_parent_leaves_nothing
step "start cluster with heartbeats" start cluster --heartbeat normal --parent $$
nodes_are_lost
stop_all
expect "nothing runs at the end" '' "$(processes)"
