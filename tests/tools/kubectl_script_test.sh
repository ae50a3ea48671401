#!/usr/bin/env bash
# deploy/kubectl-fluxqueue: which commands ask the queue through the API server, as who calls, and which run in the cluster.
# The cluster is a kubectl that says how it was called (tests/adversary/visibility_adversary_test.cc has the real one).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$here/../../tools/lib/log.sh"
# shellcheck source=checks.sh
. "$here/checks.sh"

root=$(mktemp -d)
on_exit rm -rf "$root"
readonly API=/apis/visibility.fluxqueue.io/v1alpha1

# It has the Job train in lab, the pod probe in team, and the claim c1. $SERVED: the API is; $ALL: one may list all jobs.
cat >"$root/kubectl" <<'END'
#!/bin/sh
none() { echo 'Error from server (NotFound): there is none' >&2; exit 1; }
case $* in
  *'config view'*) echo lab ;;
  *'get --raw /apis/visibility.fluxqueue.io/v1alpha1') case $SERVED in yes) ;; no) none ;; *) echo "$SERVED" >&2; exit 1 ;; esac ;;
  *"get --raw"*"/jobs?limit=1") [ "$ALL" = yes ] || { echo 'Error from server (Forbidden): not all' >&2; exit 1; } ;;
  *"get --raw"*/lab/jobs/job-train* | *"get --raw"*/team/jobs/pod-probe* | *"get --raw"*/claims/c1*) echo "of ${*##*v1alpha1}" ;;
  *"get --raw"*/claims/*) echo 'Error from server (Forbidden): no claims' >&2; exit 1 ;;
  *"get --raw"*) none ;;
  *'patch --local'*) echo "shown $(cat)" ;;
  *'create --raw'*) echo "$* $(cat)" >>"$SEEN" ;;
  *) echo "kubectl $*" ;;
esac
END
chmod +x "$root/kubectl"

# person [NAME=VALUE…] ARGUMENT…: what the script says, its exit status, and what was written to the API server.
person() {
  local environment=(PATH="$root:$PATH" SEEN="$root/seen" SERVED=yes ALL=yes)
  while [[ $1 == *=* && $1 != -* ]]; do
    environment+=("$1") && shift
  done
  : >"$root/seen"
  env "${environment[@]}" "$here/../../deploy/kubectl-fluxqueue" "$@" 2>&1 </dev/null || printf 'exit %s\n' $?
  sed "s:$API:API:" "$root/seen"
}

for command in verify "jobs --watch" "jobs -o json" "job train --trace" "explain --help" "priority train" "cancel"; do
  # shellcheck disable=SC2086
  expect "in the cluster: $command" "kubectl exec --namespace fluxqueue-system deploy/fluxqueue-cli -- fluxqueue $command" \
    "$(person $command)"
done
expect "its own options first" "kubectl --kubeconfig=f --context=c exec --namespace hpc deploy/fluxqueue-cli -- fluxqueue doctor" \
  "$(person --kubeconfig=f --context c --system-namespace hpc doctor)"
expect "a cluster without the API" "kubectl exec --namespace fluxqueue-system deploy/fluxqueue-cli -- fluxqueue cancel train" \
  "$(person SERVED=no cancel train)"
expect "uninstall is not for a pod that is to go" "kubectl-fluxqueue: uninstall runs when Fluxqueue has gone from the cluster, by \
the program itself or its image: deploy/docs/uninstall.md
exit 2" "$(person uninstall --release-workloads --yes)"
# In the pod it would be another's rights.
expect "an API that is away is not gone around" "kubectl-fluxqueue: Error from server (ServiceUnavailable): away
exit 2" "$(person SERVED='Error from server (ServiceUnavailable): away' cancel train)"

expect "jobs" "kubectl get jobs.visibility.fluxqueue.io --all-namespaces" "$(person jobs)"
expect "jobs of a queue, also ended" \
  "kubectl --context=c get jobs.visibility.fluxqueue.io --namespace lab --field-selector=queue=batch,ended=true -o wide" \
  "$(person --context c jobs -n lab --queue=batch --all -o wide)"
expect "jobs of who may not see all" "of your own namespace, as you may not list jobs of all
kubectl get jobs.visibility.fluxqueue.io" "$(person ALL=no jobs)"
expect "job" "shown of /namespaces/lab/jobs/job-train" "$(person job train)"
expect "explain a pod" "shown of /namespaces/team/jobs/pod-probe/explanation" "$(person explain team/probe)"
expect "explain a claim" "shown of /claims/c1/explanation" "$(person explain c1)"
expect "hold" 'train: is held
create --raw API/namespaces/lab/jobs/job-train/hold -f - {"spec": {"held": true}}' "$(person hold train)"
expect "release" 'train: is released
create --raw API/namespaces/lab/jobs/job-train/hold -f - {"spec": {"held": false}}' "$(person release lab/train)"
expect "cancel" 'probe: is being cancelled
create --raw API/namespaces/team/jobs/pod-probe/cancel -f - {}' "$(person cancel team/probe)"
expect "priority" 'train: has its new priority
create --raw API/namespaces/lab/jobs/job-train/priority -f - {"spec": {"priority": -5}}' "$(person priority train -5)"
expect "move" 'c1: is moved
create --raw API/claims/c1/move -f - {"spec": {"queue": "batch"}}' "$(person move c1 batch)"
expect "a job that is not there" "kubectl-fluxqueue: there is no job none in namespace lab, or you may not see it; name it \
NAMESPACE/NAME, not by its id
exit 2" "$(person cancel none)"
for word in 'a b' '../../x' 'lab/..' 'x?y' '"'; do
  [[ $(person cancel "$word") == *"this is no name"*"exit 2" ]] || fail "'$word' is no name" "$(person cancel "$word")"
  [[ $(person move train "$word") == *"this is no name"*"exit 2" ]] || fail "'$word' is no queue" "$(person move train "$word")"
done
say "ok    what is no name goes nowhere"
expect "what is no number" "kubectl-fluxqueue: 5x: this is no number
exit 2" "$(person priority train 5x)"
