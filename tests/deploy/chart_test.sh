#!/usr/bin/env bash
# What the chart makes of several values, before the real API server (nothing runs); what it says to bad values; and that
# what is rendered from it (k8s/, its table of values) is the same as it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$here/../../tools
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$tools/lib/cache.sh"

readonly SYSTEM=fluxqueue-system TRIAL=kafka.bundled.enabled=true,postgres.bundled.enabled=true
chart=$here/../../deploy/helm/fluxqueue
dir=$(mktemp -d)
on_exit rm -rf "$dir"
on_exit "$tools/cluster/stop" "$dir/cluster"
export KUBECONFIG=$dir/cluster/kubeconfig
helm() { HOME=$dir "$helm" --namespace $SYSTEM "$@"; }
kubectl() { "$kubectl" --request-timeout 60s "$@"; }

# What is not Kubernetes' own: their operators' CRDs are not here.
readonly FOREIGN='cert-manager.io|keda.sh|monitoring.coreos.com'
foreign() { awk -v groups="apiVersion: ($FOREIGN)/" 'BEGIN { RS = "---\n" } ($0 ~ groups) == '"$1"' { printf "---\n%s", $0 }'; }

# accepted NAME OPTION…: lint finds nothing, and the API server takes it all, without a warning (PodSecurity would have one).
accepted() {
  local name=$1
  shift
  helm lint --strict "$chart" "$@"
  helm template fluxqueue "$chart" --no-hooks "$@" >"$dir/$name.yaml"
  foreign 0 <"$dir/$name.yaml" | kubectl apply --dry-run=server -f - >"$dir/$name.out" 2>"$dir/$name.err" || {
    cat "$dir/$name.err"
    return 1
  }
  [[ ! -s $dir/$name.err ]] || die "$(cat "$dir/$name.err")"
}

# refused OPTION MESSAGE
refused() {
  local said
  if said=$(helm template fluxqueue "$chart" --set "$TRIAL" --set "$1" 2>&1 >/dev/null); then
    die "--set $1 is taken"
  fi
  [[ $said == *"$2"* ]] || die "--set $1: wanted '$2', got: $said"
}

start() {
  "$tools/cluster/start" "$dir/cluster" --unsafe-no-fsync
  kubectl apply -f "$here/../../k8s/namespace.yaml"
  kubectl apply -f "$chart/crds"
  kubectl wait --for condition=Established --timeout 30s crd --all
}

trial() {
  accepted trial --set $TRIAL
  grep -q 'host=fluxqueue-postgres' "$dir/trial.yaml"
}

external() {
  cat >"$dir/values.yaml" <<END
image: {registry: registry.example/, tag: "1.2", pullSecrets: [pull]}
kafka: {bootstrap: "k1:9093,k2:9093", existingSecret: kafka, ports: [9093]}
postgres: {dsn: host=db dbname=fluxqueue user=u sslmode=verify-full, existingSecret: db, tlsSecret: db-ca}
webhook: {certificate: {existingSecret: webhook, caBundle: Y2E=}}
cleanup: {replicas: 1}
queue: {config: {retention: 24h, grpc: {port: 9201}}}
matcher: {image: "example/matcher-fluxion:1", config: {fluxion: {library: /usr/lib/flux/libreapi_cli.so}}}
autoscaling: {by: cpu}
networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}
podLabels: {team: hpc}
podAnnotations: {note: x}
nodeSelector: {pool: system}
tolerations: [{key: system, operator: Exists}]
END
  accepted external --values "$dir/values.yaml"
  grep -q 'registry.example/fluxqueue/queue:1.2' "$dir/external.yaml"
  grep -q 'port: 9201' "$dir/external.yaml"
  [[ $(grep -c 'kind: HorizontalPodAutoscaler' "$dir/external.yaml") == 3 ]]
  # One replica needs no budget, and would never let its node be drained with one.
  [[ $(grep -c 'kind: PodDisruptionBudget' "$dir/external.yaml") == 4 ]]
  # Kafka and Postgres are there before the release is: so may the hook be.
  helm template fluxqueue "$chart" --values "$dir/values.yaml" --show-only templates/prepare.yaml >"$dir/prepare.yaml"
  kubectl apply --dry-run=server -f "$dir/prepare.yaml"
  [[ $(grep -c 'helm.sh/hook: pre-install,pre-upgrade' "$dir/prepare.yaml") == 2 ]]
}

operators() {
  accepted operators --set $TRIAL --set webhook.certificate.certManager.enabled=true \
    --set autoscaling.by=lag,autoscaling.prometheus=http://prometheus:9090 \
    --set monitoring.serviceMonitor=true,monitoring.rules=true,monitoring.dashboards=true \
    --set monitoring.runbookUrlPrefix=https://wiki.example/runbooks/
  local kind rules=$chart/rules/fluxqueue.yaml
  foreign 1 <"$dir/operators.yaml" >"$dir/foreign.yaml"
  for kind in Certificate Issuer ScaledObject ServiceMonitor; do
    grep -qx "kind: $kind" "$dir/foreign.yaml" || die "there is no $kind"
  done
  diff <(sed -n 's|.*runbook_url: deploy/docs/|https://wiki.example/|p' "$rules") \
    <(sed -n 's|.*runbook_url: ||p' "$dir/operators.yaml") || die "the links of the alerts are others"
}

without() {
  accepted without --set $TRIAL --set cli.enabled=false,networkPolicy.enabled=false,webhook.enabled=false \
    --set hooks.prepare=false,priorityClass.create=false,priorityClass.name=system-cluster-critical \
    --set flowSchema.enabled=false,podDisruptionBudget.enabled=false,defaultQueue=null
  ! grep -qE 'kind: (NetworkPolicy|MutatingWebhookConfiguration|PriorityClass|FlowSchema|PodDisruptionBudget|FluxQueue)$' \
    "$dir/without.yaml"
}

bad_values() {
  refused kafka.boostrap=x:1 "'boostrap' not allowed"
  refused queue.replicas=0 "/queue/replicas"
  refused log.level=loud "'debug', 'info', 'warning', 'error'"
  refused monitoring.runbookUrlPrefix=runbooks "/monitoring/runbookUrlPrefix"
  refused kafka.bootstrap=nowhere "/kafka/bootstrap"
  refused autoscaling.by=lag "autoscaling.prometheus: by lag needs"
  refused kafka.bundled.enabled=false "kafka.bootstrap: say where Kafka is"
  refused postgres.bundled.enabled=false "postgres.dsn: say where the database is"
  refused 'postgres.bundled.enabled=false,postgres.dsn=host=x password=y' "postgres.existingSecret"
  [[ $(helm template x "$chart" --namespace other --set $TRIAL 2>&1) == *"--namespace fluxqueue-system"* ]]
}

# An upgrade does not begin before the CRDs are those of the chart.
old_crds() {
  local said
  helm install fluxqueue "$chart" --set $TRIAL --dry-run=server >/dev/null
  kubectl patch crd fluxqueues.fluxqueue.io --type json \
    -p '[{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/agingPeriod"}]'
  if said=$(helm install fluxqueue "$chart" --set $TRIAL --dry-run=server 2>&1); then
    die "older CRDs are taken"
  fi
  [[ $said == *"fluxqueues.fluxqueue.io"*"helm show crds"* ]] || die "$said"
  helm show crds "$chart" | kubectl apply --server-side --force-conflicts -f -
  helm install fluxqueue "$chart" --set $TRIAL --dry-run=server >/dev/null
}

helm=$(helm_home "$tools")/helm kubectl=$(kubernetes_home "$tools")/kubectl
steps_log_dir "$dir/logs"
step "the control plane" start
step_async "rendered files" "$tools/render" --check
step_async "bad values" bad_values
steps_wait
step "trial" trial
step "external" external
step "operators" operators
step "without what can be left out" without
step "CRDs of another version" old_crds
