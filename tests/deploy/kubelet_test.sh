#!/usr/bin/env bash
# The chart on a real node, as a user installs it: install, load, upgrade, rollback, uninstall, with jobs in flight.
#
#   tests/deploy/kubelet_test.sh PROGRAMS
#
# The services, Kafka and Postgres are pods on a node with containerd, kubelet and kube-proxy; the nodes of the jobs are
# kwok's, but for one job that really runs. Then once more with a Kafka and a Postgres that are outside of the cluster.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
tools=$repository/tools
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$tools/lib/proc.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$tools/lib/cache.sh"
# shellcheck source=node/common.sh
. "$here/node/common.sh"

readonly ADDRESS=10.88.0.1 NODE=machine SYSTEM=fluxqueue-system

if [[ ${1:-} != --inside ]]; then
  (($# == 1)) || die "usage: tests/deploy/kubelet_test.sh PROGRAMS"
  dir=$(mktemp -d)
  on_exit rm -rf "$dir"
  steps_log_dir "$dir/logs"
  step "images" "$here/node/images" "$1" "$dir/images"
  "$here/node/enter" "$dir" $ADDRESS "$0" --inside "$dir" "$(realpath "$1")"
  exit
fi
dir=$2 programs=$3
# shellcheck source=external.sh
. "$here/external.sh"
export KUBECONFIG=$dir/cluster/kubeconfig
kubectl() { "$(kubernetes_home "$tools")/kubectl" --request-timeout 60s "$@"; }
helm() { HOME=$dir "$(helm_home "$tools")/helm" --namespace $SYSTEM "$@"; }
tag=$(<"$dir/images/tag")

start_all() {
  "$tools/cluster/start" "$dir/cluster" --unsafe-no-fsync --address $ADDRESS --nodes 6
  "$here/node/start" "$dir/node" "$dir/cluster" $NODE $ADDRESS "$dir"/images/*.tar
  # A release to upgrade to, which is named by its digests, as a node has it that has pulled it so.
  local name digest
  for name in $(node_ctr "$dir/node" images ls -q | grep ":$tag$"); do
    digest=$(basename "${name%:*}") && digest=$(sed -n "s/^    $digest: //p" "$dir/images/values.yaml")
    node_ctr "$dir/node" images tag "$name" "${name%:*}@$digest"
  done
}

cat >"$dir/values.yaml" <<END
image: {registry: localhost, tag: $tag}
kafka: {bundled: {enabled: true, image: localhost/fluxqueue/kafka:test, storage: ""}}
postgres: {bundled: {enabled: true, image: localhost/fluxqueue/postgres:test, storage: ""}}
nodeSelector: {kubernetes.io/hostname: $NODE}
END
chart() { helm "$1" fluxqueue "$repository/deploy/helm/fluxqueue" --values "$dir/values.yaml" --wait --timeout 4m "${@:2}"; }

# create_job SECONDS PODS: a Job whose pods run so long, all at once.
create_job() {
  kubectl create --namespace work -f - <<END
apiVersion: batch/v1
kind: Job
metadata: {generateName: job-}
spec:
  completions: $2
  parallelism: $2
  template:
    metadata: {annotations: {fluxqueue.io/run-seconds: "$1"}}
    spec:
      restartPolicy: Never
      nodeSelector: {type: kwok}
      containers: [{name: c, image: none, resources: {requests: {cpu: "2"}}}]
END
}

# Until $dir/enough is there: a Job each second, every fourth a gang. A refusal is one too many.
load() {
  local i
  for ((i = 1; ; ++i)); do
    [[ ! -e $dir/enough ]] || return 0
    create_job $((i % 5 + 1)) $((i % 4 ? 1 : 6)) >>"$dir/created"
    nap 1
  done
}

# images_are TAG: every pod of the five services, and none is left of another.
images_are() {
  local others
  others=$(kubectl --namespace $SYSTEM get pods -o jsonpath='{range .items[*]}{.spec.containers[0].image}{"\n"}{end}' |
    grep -E '/(admission|queue|matcher|binder|cleanup|visibility|graph):' | grep -cvE ":$1(@|$)" || true)
  ((others == 0))
}

install() {
  kubectl create namespace $SYSTEM
  kubectl label namespace $SYSTEM pod-security.kubernetes.io/enforce=restricted
  chart install
  kubectl create namespace work
  kubectl label namespace work fluxqueue.io/managed=true
}

a_real_job() {
  kubectl create --namespace work -f - <<END
apiVersion: batch/v1
kind: Job
metadata: {name: real}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {kubernetes.io/hostname: $NODE}
      containers:
        - {name: c, image: "localhost/fluxqueue/admission:$tag", imagePullPolicy: Never, args: [--version], resources: {requests: {cpu: 10m}}}
END
  kubectl wait --namespace work --for condition=Complete --timeout 60s job/real
  [[ $(kubectl logs --namespace work job/real) == fluxqueue-admission* ]]
  [[ $(kubectl get pods --namespace work -l job-name=real -o jsonpath='{.items[0].spec.schedulerName}') == fluxqueue ]]
}

certificate() { kubectl get secret --namespace $SYSTEM fluxqueue-webhook -o jsonpath='{.data}'; }
grpc_certificate() { kubectl get secret --namespace $SYSTEM fluxqueue-grpc-queue -o jsonpath='{.data}'; }

upgrade() {
  local before grpc_before
  before=$(certificate) grpc_before=$(grpc_certificate)
  kubectl patch fluxqueue default --type merge -p '{"spec": {"weight": 7}}'
  chart upgrade --values "$dir/images/values.yaml" --set image.tag=next --set log.level=debug
  wait_until 60 "the pods of the release before to go" images_are next
  # What the administrator has set is not the chart's to change.
  [[ $(kubectl get fluxqueue default -o jsonpath='{.spec.weight}') == 7 ]]
  [[ $(certificate) == "$before" && $(grpc_certificate) == "$grpc_before" ]]
}

rollback() {
  helm rollback fluxqueue 1 --wait --timeout 4m
  wait_until 60 "the pods of the upgrade to go" images_are "$tag"
}

nothing_is_lost() {
  local created
  created=$(($(wc -l <"$dir/created") + 1))
  say "$created Jobs were created"
  ((created > 15))
  kubectl wait --namespace work --for condition=Complete --timeout 120s job --all >/dev/null
  [[ $(kubectl get jobs --namespace work --no-headers | wc -l) == "$created" ]]
  env -u KUBECONFIG PATH="$(kubernetes_home "$tools"):$repository/deploy:$PATH" kubectl fluxqueue --kubeconfig "$KUBECONFIG" verify
  helm test fluxqueue
}

# What tools/up and tools/down leave on a person's machine: a file that names a system which does not run.
left_behind() {
  mkdir -p "$dir/state/fluxqueue"
  cat >"$dir/state/fluxqueue/fluxqueue.yaml" <<END
postgres: {dsn: "postgresql://fluxqueue@127.0.0.1:1/fluxqueue"}
kafka: {bootstrap: "127.0.0.1:1"}
kubernetes: {kubeconfig: "$dir/state/fluxqueue/kubeconfig"}
END
  sed 's#server: .*#server: https://127.0.0.1:1#' "$KUBECONFIG" >"$dir/state/fluxqueue/kubeconfig"
}

# As a person on another machine calls it, who has tried tools/up there. It has everything, and nothing that is secret.
support_bundle() {
  local bundle=$dir/bundle name log secret
  left_behind
  XDG_STATE_HOME=$dir/state PATH=$(kubernetes_home "$tools"):$programs:$PATH \
    command kubectl fluxqueue support-bundle "$bundle.tar.gz"
  mkdir "$bundle"
  tar -xzf "$bundle.tar.gz" -C "$bundle" --strip-components 1
  cat "$bundle/commands/doctor.txt"
  if grep '^missing:' "$bundle/README.txt"; then die "the bundle is not whole"; fi
  for name in admission queue matcher binder cleanup visibility graph; do
    for log in "$bundle/logs/fluxqueue-$name"-*.log; do
      [[ -s $log ]] || die "$log is empty"
    done
    grep -q "^ *name: fluxqueue-$name$" "$bundle/cluster/configmaps.yaml" || die "there is no ConfigMap of $name"
    grep -qE "^ok +$name +2 × version [0-9.]+$" "$bundle/commands/doctor.txt" || die "doctor does not know $name's version"
  done
  for secret in fluxqueue-postgres/{password,admission,queue,matcher,binder,cleanup,graph,cli} fluxqueue-webhook/tls.key fluxqueue-grpc-{queue,graph,cli}/tls.key; do
    secret=$(kubectl get secret --namespace $SYSTEM "${secret%/*}" -o json | jq -er ".data[\"${secret#*/}\"] | @base64d")
    if grep -rlF "$secret" "$bundle"; then die "a secret is in the bundle"; fi
  done
  grep -q "a Job of work would be held" "$bundle/commands/doctor.txt"
  grep -qE "^ok +accounts in Postgres +one for each service$" "$bundle/commands/doctor.txt" || die "services share an account"
  # What doctor may do for that, it may do only so.
  if kubectl --as system:serviceaccount:$SYSTEM:fluxqueue-cli create job real --namespace work --image none 2>"$dir/said"; then
    die "the command line's account may make Jobs"
  fi
  grep "only as a dry run" "$dir/said"
}

sql() { kubectl exec --namespace $SYSTEM fluxqueue-postgres-0 -- psql -qXAt -U fluxqueue -d fluxqueue -c "$1"; }

# As a release leaves it that knows one account only: it has the tables, and there are no passwords of others.
as_before() {
  sql 'ALTER TABLE queue.promises OWNER TO fluxqueue'
  kubectl patch secret --namespace $SYSTEM fluxqueue-postgres --type json -p '[{"op": "remove", "path": "/data/cli"}]'
}

# What the upgrade since then has done about it.
accounts_are_made() {
  [[ $(sql "SELECT tableowner FROM pg_tables WHERE schemaname = 'queue' AND tablename = 'promises'") == fluxqueue_queue ]]
  kubectl rollout restart --namespace $SYSTEM deploy/fluxqueue-cli
  kubectl rollout status --namespace $SYSTEM --timeout 60s deploy/fluxqueue-cli
  kubectl exec --namespace $SYSTEM deploy/fluxqueue-cli -- fluxqueue queues
}

# As deploy/docs/runbooks/FluxqueueCertificateExpires.md has it.
another_certificate() {
  local before pods
  before=$(certificate)
  mapfile -t pods < <(kubectl get pods --namespace $SYSTEM -l app.kubernetes.io/component=admission -o name)
  kubectl delete secret --namespace $SYSTEM fluxqueue-webhook
  chart upgrade
  kubectl rollout restart --namespace $SYSTEM deploy/fluxqueue-admission
  kubectl wait --namespace $SYSTEM --for delete --timeout 60s "${pods[@]}"
  [[ $(certificate) != "$before" ]]
  kubectl wait --namespace work --for condition=Complete --timeout 60s "$(create_job 1 1 | cut -d' ' -f1)"
}

# Who has been given the role may use the command line, and nobody else.
operators() {
  kubectl create rolebinding operators --namespace $SYSTEM --role fluxqueue-operator --user anna
  kubectl --as anna exec --namespace $SYSTEM deploy/fluxqueue-cli -- fluxqueue queues
  if kubectl --as bert exec --namespace $SYSTEM deploy/fluxqueue-cli -- fluxqueue queues; then
    die "anybody may use the command line"
  fi
  kubectl delete rolebinding operators --namespace $SYSTEM
}

# Everything of ours that there is, of whatever kind, as KIND/NAME.
ours() {
  local kinds
  kinds=$(kubectl api-resources --verbs list -o name | grep -v '^events' | paste -sd,)
  kubectl get "$kinds" -A -l app.kubernetes.io/part-of=fluxqueue -o name --ignore-not-found
}
no_pods() { [[ -z $(kubectl get pods --namespace $SYSTEM -o name) ]]; }

uninstall() {
  local left uninstalling
  # A namespace that goes at the same time ends: the aggregated API goes before what answers it.
  kubectl create namespace leaves
  helm uninstall fluxqueue --wait --timeout 2m &
  uninstalling=$!
  kubectl delete namespace leaves --timeout 60s
  wait $uninstalling
  wait_until 60 "the pods to end" no_pods
  left=$(ours | sort | paste -sd' ')
  [[ $left == "customresourcedefinition.apiextensions.k8s.io/fluxjobs.fluxqueue.io \
customresourcedefinition.apiextensions.k8s.io/fluxqueues.fluxqueue.io \
customresourcedefinition.apiextensions.k8s.io/fluxwindows.fluxqueue.io fluxqueue.fluxqueue.io/default" ]] || die "left: $left"
  # As deploy/docs/uninstall.md has it.
  kubectl delete crd -l app.kubernetes.io/part-of=fluxqueue
  [[ -z $(ours) ]]
  [[ $(kubectl get all,configmaps,secrets,pvc,networkpolicies,roles,rolebindings,serviceaccounts --namespace $SYSTEM -o name) == \
"configmap/kube-root-ca.crt"$'\n'"serviceaccount/default" ]]
}

# In the namespace that was ours a pod needs nobody but Kubernetes.
others_go_on() {
  kubectl run free --namespace work --image localhost/fluxqueue/pause:test --image-pull-policy Never \
    --overrides '{"spec": {"nodeSelector": {"kubernetes.io/hostname": "'$NODE'"}}}'
  kubectl wait --namespace work --for condition=Ready --timeout 60s pod/free
}

# What a failure leaves to look at.
bundle() {
  [[ -z ${passed:-} ]] || return 0
  kubectl get pods -A -o wide || true
  kubectl get events --namespace $SYSTEM | tail -n 30 || true
  local name
  for name in admission queue matcher binder cleanup visibility graph kafka postgres cli; do
    say "--- $name"
    kubectl logs --namespace $SYSTEM -l app.kubernetes.io/component=$name --tail 8 || true
  done
} >&2

on_exit bundle
steps_log_dir "$dir/logs"
step "a control plane and a real node" start_all
step "install" install
step "a job that really runs" a_real_job
for _ in 1 2 3; do
  create_job 60 2 >>"$dir/created"
done
load &
loader=$!
step "upgrade" upgrade
step "rollback" rollback
: >"$dir/enough"
wait $loader || die "a Job was refused while the services were replaced"
step "all jobs end, nothing is lost" nothing_is_lost
step "support bundle" support_bundle
step "operators" operators
step "a database of before" as_before
step "another certificate" another_certificate
step "an account for each service" accounts_are_made
step "uninstall" uninstall
step "others go on" others_go_on
step "Kafka and PostgreSQL of a site" start_site
step "bad Secrets" bad_secrets
step "install with the site's" install_on_site
step "who may call" callers
step "a certificate for a password, and PLAIN for SCRAM" other_credentials
step "uninstall from there" uninstall_from_site
passed=yes
