#!/usr/bin/env bash
# What an operator does on a real system. `fluxqueue top` on a real terminal (tmux) draws, follows what happens, obeys its
# keys, fits another size, and leaves the terminal as it was, however it ends. A node is drained, its job goes back into
# line, at once or when the deadline is over, or fails if nobody would make its pod again, and the node comes back.
# `fluxqueue doctor` finds all as it must be, and names what is not. What cannot be done ends with status 2.
#
#   tests/tools/operate_test.sh BIN
#
# BIN: the folder of the programs. Needs tools/deps.
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

export FLUXQUEUE_BIN=${1:?usage: tests/tools/operate_test.sh BIN}
root=$(mktemp -d)
clean_up() {
  tmux -S "$root/tmux" kill-server 2>/dev/null || true
  "$tools/stack/stop" "$root/stack" || true
  rm -rf "$root"
}
on_exit clean_up

kube() { "$(kubernetes_home "$tools")/kubectl" --kubeconfig "$root/stack/kubeconfig" --request-timeout 20s "$@"; }
terminal() { tmux -S "$root/tmux" "$@"; }
screen() { terminal capture-pane -p -t top; }
shows() { if screen | grep -q -- "$1"; then echo yes; else screen; fi; }
# The cursor is there, the first screen is there, typed letters are shown.
terminal_state() {
  terminal display-message -p -t top '#{cursor_flag}#{alternate_on}'
}
flux() { "$FLUXQUEUE_BIN/fluxqueue" --config "$root/stack/fluxqueue.yaml" "$@"; }
begin() {
  terminal send-keys -t top "clear; $FLUXQUEUE_BIN/fluxqueue --config $root/stack/fluxqueue.yaml top --every 0.3" Enter
  eventually 20 "top draws" yes shows 'q quit'
}

# job NAME SECONDS: a Job that runs so long; a node has room for one.
job() {
  cat <<END
---
apiVersion: batch/v1
kind: Job
metadata: {name: $1, namespace: demo}
spec:
  template:
    metadata: {annotations: {fluxqueue.io/run-seconds: $2}}
    spec:
      restartPolicy: Never
      containers: [{name: c, image: none, resources: {requests: {cpu: "5"}}}]
END
}

bare_pod() {
  cat <<END
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: demo, annotations: {fluxqueue.io/run-seconds: 1h}}
spec:
  restartPolicy: Never
  containers: [{name: c, image: none, resources: {requests: {cpu: "5"}}}]
END
}

# More jobs than have room.
submit() {
  kube create namespace demo
  kube label namespace demo fluxqueue.io/managed=true
  for i in {1..40}; do
    job "job-$i" 1h
  done | kube apply -f -
}

step "start a system" "$tools/stack/start" "$root/stack" --nodes 10 --test
step "submit 40 jobs" submit
terminal new-session -d -s top -x 120 -y 30 "exec bash --norc"

begin
eventually 60 "it shows who runs" yes shows ' 10 run '
eventually 20 "it shows who waits, and why" yes shows 'Busy'
eventually 20 "nodes are full" yes shows '█ default 10'
eventually 20 "nobody is behind" yes shows 'queue 0'
expect "the other screen, no cursor" 01 "$(terminal_state)"

first_job() { screen | awk '/POSITION/ { getline; print $2 }'; }
before=$(first_job)
terminal send-keys -t top j j
scrolled() { [[ $(first_job) != "$before" ]] && echo yes; }
eventually 10 "j scrolls" yes scrolled
terminal send-keys -t top p
eventually 10 "p pauses" yes shows paused
terminal send-keys -t top p
terminal resize-window -t top -x 80 -y 20
rows() { screen | grep -n 'q quit' | cut -d: -f1; }
eventually 10 "it fits another size" 20 rows
terminal resize-window -t top -x 120 -y 30
kube delete job --namespace demo job-40 --wait=false
eventually 20 "it follows what happens" yes shows 'of 39 jobs'

terminal send-keys -t top q
eventually 10 "q leaves the terminal as it was" 10 terminal_state
terminal send-keys -t top 'echo it is "echo"ed' Enter
eventually 10 "the shell works again" yes shows 'it is echoed'

begin
pid=$(pgrep -f "$root/stack/fluxqueue.yaml top")
kill -TERM "$pid"
eventually 10 "so does SIGTERM" 10 terminal_state
begin
terminal send-keys -t top C-c
eventually 10 "so does ^C" 10 terminal_state

# Nobody else waits for the node.
kube delete jobs --namespace demo --wait=false job-{11..39} >/dev/null
node=$(flux job demo/job-1 -o json | jq -r '.nodes[0]')
flux drain "$node" --requeue --wait
expect "nothing of ours is on a drained node" '{}' "$(flux nodes -o json | jq -c ".[] | select(.node == \"$node\").jobs")"
where() { flux job demo/job-1 -o json | jq -r '"\(.state) \(.attempt) \(.nodes[0])"'; }
eventually 20 "its job waits for its second attempt" "Pending 2 null" where
flux undrain "$node"
eventually 60 "an undrained node is used again" "Running 2 $node" where

# A job that is longer than the deadline goes back into line then; one that ends before it is let be.
drained() { flux drain "$1" --wait --deadline "$2" && echo "exit 0"; }
expect "a job outlasts the deadline" "$node is cordoned; 1 of our jobs are there
  demo/job-1 ($(flux job demo/job-1 -o json | jq -r .id))
the deadline is over: 1 of our jobs go back into line
demo/job-1 has left; 0 remain
$node is empty of our jobs
exit 0" "$(drained "$node" 2s)"
eventually 20 "it waits for its third attempt" "Pending 3 null" where
flux undrain "$node"
eventually 60 "and begins it" "Running 3 $node" where
kube delete job --namespace demo job-1
job short 10s | kube apply -f -
state() { flux job "demo/$1" -o json | jq -r '"\(.state) \(.attempt)"'; }
eventually 60 "a short job runs" "Running 1" state short
node=$(flux job demo/short -o json | jq -r '.nodes[0]')
expect "a job ends before the deadline" "$node is cordoned; 1 of our jobs are there
  demo/short ($(flux job demo/short -o json | jq -r .id))
demo/short has left; 0 remain
$node is empty of our jobs
exit 0" "$(drained "$node" 10m)"
expect "as it would have without a drain" "Succeeded 1" "$(state short)"
expect "its trace has its pod's binding" "pod 0" \
  "$(flux job demo/short --trace -o json | jq -r '[.stages[].stage] | .[index("binding") + 1]')"
expect "its node stays closed" true "$(kube get node "$node" -o jsonpath='{.spec.unschedulable}')"
flux undrain "$node"
node=$(flux job demo/job-2 -o json | jq -r '.nodes[0]')
expect "a deadline of 0 is over at once" "the deadline is over: 1 of our jobs go back into line" \
  "$(drained "$node" 0 | sed -n 3p)"
flux undrain "$node"
# A pod that nobody would make again has no line to go back into.
bare_pod | kube apply -f -
eventually 60 "a bare pod runs" "Running 1" state bare
node=$(flux job demo/bare -o json | jq -r '.nodes[0]')
flux drain "$node" --requeue --wait
eventually 20 "it ends Failed" "Failed 1" state bare
flux undrain "$node"
refused "a deadline needs somebody who waits" "--deadline requires --wait" flux drain "$node" --deadline 1h
refused "a node that is not there" "no-such-node" flux drain no-such-node --wait

flux doctor || fail "doctor finds all as it must be" "$(flux doctor)"
expect "doctor asks each service for its version" 5 \
  "$(flux doctor | grep -cE '^ok +(admission|queue|matcher|binder|cleanup) +1 × version [0-9.]+$')"
kube delete clusterrolebinding fluxqueue-binder
refused "doctor names a right that is missing" "patch pods" flux doctor

refused "a word that is no command" "did you mean job?" flux jbos
# 1 would say that an invariant is broken.
sed 's#server: .*#server: https://nowhere.invalid:6443#' "$root/stack/kubeconfig" >"$root/elsewhere"
afar() { PATH=$(kubernetes_home "$tools"):$PATH "$FLUXQUEUE_BIN/fluxqueue" --kubeconfig "$root/elsewhere" verify; }
expect "a cluster that cannot be reached" 2 "$(afar 2>/dev/null || echo $?)"
