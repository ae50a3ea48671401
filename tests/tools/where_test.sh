#!/usr/bin/env bash
# Which system the command line is about, on the machine of a person who has had a system of tools/up and stopped it; and that
# the tests themselves see nothing of that person's.
#
#   tests/tools/where_test.sh BUILD
#
# BUILD: the build's folder. The cluster's side is a kubectl that says how it was called (tests/deploy/kubelet_test.sh has the
# real one). Run by ctest.
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=checks.sh
. "$tools/../tests/tools/checks.sh"

build=$(realpath "${1:?usage: tests/tools/where_test.sh BUILD}")
root=$(mktemp -d)
on_exit rm -rf "$root"
state=$root/person/.local/state/fluxqueue

# kubeconfig SERVER CONTEXT
kubeconfig() {
  cat <<END
apiVersion: v1
kind: Config
current-context: $2
contexts: [{name: $2, context: {cluster: $2}}]
clusters: [{name: $2, cluster: {server: "$1"}}]
END
}

# What tools/up and tools/down leave behind. Nobody listens at these ports.
mkdir -p "$state" "$root/bin" "$root/person/.kube"
kubeconfig https://127.0.0.1:1 mine >"$state/kubeconfig"
cat >"$state/fluxqueue.yaml" <<END
postgres: {dsn: "postgresql://fluxqueue@127.0.0.1:1/fluxqueue"}
kafka: {bootstrap: "127.0.0.1:1"}
kubernetes: {kubeconfig: "$state/kubeconfig"}
END
kubeconfig https://10.88.0.1:6443 test >"$root/test-cluster"
kubeconfig https://prod.example:6443 prod >"$root/person/.kube/config"
# Its cluster has no aggregated API of ours; with $AWAY one that does not answer.
cat >"$root/bin/kubectl" <<'END'
#!/bin/sh
[ -z "$AWAY" ] || { echo 'Error from server (ServiceUnavailable): it is away' >&2; exit 1; }
[ "$1" != get ] || { echo 'Error from server (NotFound): there is none' >&2; exit 1; }
echo "kubectl $*"
END
chmod +x "$root/bin/kubectl"

# person [NAME=VALUE…] COMMAND…: of fluxqueue, and its exit status.
person() {
  local environment=(HOME="$root/person" PATH="$root/bin:$PATH")
  while [[ $1 == *=* ]]; do
    environment+=("$1") && shift
  done
  env "${environment[@]}" "$build/bin/fluxqueue" "$@" 2>&1 || printf 'exit %s\n' $?
}

# stopped WHAT START PERSON…: it says in one sentence what does not run, and goes nowhere else. START: how it is started.
stopped() {
  local what=$1 start=$2
  shift 2
  expect "$what" "fluxqueue: $state/fluxqueue.yaml: the system that this file names does not run (Postgres user=fluxqueue \
dbname=fluxqueue host=127.0.0.1 port=1 does not answer, nor does Kafka at 127.0.0.1:1): $start, or name another one with \
--config FILE, or a cluster with --kubeconfig FILE or \$KUBECONFIG
exit 2" "$(person "$@")"
}

# in_cluster WHAT OPTIONS COMMAND PERSON…: kubectl runs COMMAND, with OPTIONS of its own.
in_cluster() {
  local what=$1 options=$2 command=$3 said
  shift 3
  said=$(person "$@")
  [[ $said == "kubectl $options--namespace=fluxqueue-system exec deploy/fluxqueue-cli -- fluxqueue "*" $command" ]] ||
    fail "$what" "$said"
  say "ok    $what"
}

expect "a test has a home of its own" "$build/test-home" "$HOME"
expect "so has one of each folder" '' \
  "$(find "$build" -name CTestTestfile.cmake -exec grep -L "$build/test_environment.cmake" {} +)"
printf 'include("%s")\nexecute_process(COMMAND env)\n' "$build/test_environment.cmake" >"$root/environment.cmake"
expect "of a person's settings a test has the cache" "FLUXQUEUE_CACHE=$root/person/.cache/fluxqueue
HOME=$build/test-home
KEPT=yes" "$(env -i PATH="$PATH" KEPT=yes HOME="$root/person" XDG_STATE_HOME="$root" FLUXQUEUE_STATE="$state" \
  FLUXQUEUE_CONFIG="$state/fluxqueue.yaml" KUBECONFIG="$root/test-cluster" PGHOST=nowhere \
  cmake -P "$root/environment.cmake" | grep -vE '^(PATH|PWD|_|SHLVL)=' | sort)"

stopped "what was stopped is said to be" "start it with tools/up" jobs
stopped "its own kubeconfig means it" "start it with tools/up" KUBECONFIG="$state/kubeconfig" jobs
cp "$state/kubeconfig" "$root/copy"
stopped "so does a copy, among others" "start it with tools/up" KUBECONFIG="$root/copy:$root/test-cluster" jobs
stopped "and --kubeconfig" "start it with tools/up" --kubeconfig "$root/copy" jobs
stopped "doctor does not look into another's ruins" "start it with tools/up" doctor
stopped "a file that somebody names" "start it" jobs --config "$state/fluxqueue.yaml"
stopped "\$FLUXQUEUE_CONFIG before \$KUBECONFIG" "start it" \
  FLUXQUEUE_CONFIG="$state/fluxqueue.yaml" KUBECONFIG="$root/test-cluster" jobs

in_cluster "\$KUBECONFIG's cluster before what was left behind" '' jobs KUBECONFIG="$root/test-cluster" jobs
in_cluster "the first file's" '' jobs KUBECONFIG="$root/test-cluster:$root/copy" jobs
in_cluster "--kubeconfig" "--kubeconfig=$root/test-cluster " jobs --kubeconfig "$root/test-cluster" jobs
in_cluster "--context of ~/.kube/config" "--context=prod " jobs --context prod jobs
in_cluster "an option before \$FLUXQUEUE_CONFIG" "--context=prod " jobs \
  FLUXQUEUE_CONFIG="$state/fluxqueue.yaml" --context prod jobs
person KUBECONFIG="$root/test-cluster" support-bundle "$root/bundle"
[[ $(<"$root/bundle") == "kubectl "*" support-bundle -" ]] || fail "a support bundle of the cluster" "$(<"$root/bundle")"
say "ok    a support bundle of the cluster"

# Who names a file wants to know what is broken there.
found=$(person --config "$state/fluxqueue.yaml" doctor)
[[ $found == *"fail"*Postgres*"fail"*Kafka*"exit 1" ]] || fail "doctor on a file that somebody names" "$found"
say "ok    doctor on a file that somebody names"

mkdir "$root/folder"
mv "$state" "$root/folder"
in_cluster "nothing is said and nothing is there: kubectl's own" '' jobs jobs

# In the pod it would be another's rights, and NAME a job of any namespace.
expect "an aggregated API that is away is not gone around" "fluxqueue: /apis/visibility.fluxqueue.io/v1alpha1: it is away
exit 2" "$(person AWAY=yes KUBECONFIG="$root/test-cluster" cancel train)"
