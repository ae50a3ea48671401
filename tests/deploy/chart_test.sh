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

readonly SYSTEM=fluxqueue-system
readonly TRIAL=image.registry=registry.example,kafka.bundled.enabled=true,postgres.bundled.enabled=true
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
  wait_until 30 "the CRDs" kubectl wait --for condition=Established --timeout 1s crd --all
}

# secret NAME KEY: what the rendered Secret of the trial has.
secret() {
  awk -v name="  name: $1" 'BEGIN { RS = "---\n" } /\nkind: Secret\n/ && index($0, "\n" name "\n")' "$dir/trial.yaml" |
    sed -n "s/^ *$2: //p" | base64 -d
}

# On port 9200 nothing is in plain text, and each certificate is of the one authority and for its name.
grpc_certificates() {
  local name
  for name in queue graph; do
    sed -n "/^  name: fluxqueue-$name\$/,/^---/p" "$dir/trial.yaml" >"$dir/$name.yaml"
    grep -q 'client_ca: /etc/fluxqueue/grpc/ca.crt' "$dir/$name.yaml" || die "$name serves without TLS"
    grep -q "queue: fluxqueue-queue.$SYSTEM.svc" "$dir/$name.yaml" || die "$name lets everybody in"
  done
  if grep 'kubernetes.io/h2c' "$dir/trial.yaml"; then die "a Service says plain text"; fi
  for name in queue graph cli visibility; do
    secret fluxqueue-grpc-$name ca.crt >"$dir/$name.ca"
    secret fluxqueue-grpc-$name tls.crt >"$dir/$name.crt"
    cmp "$dir/$name.ca" "$dir/queue.ca"
    openssl verify -CAfile "$dir/queue.ca" -purpose sslclient "$dir/$name.crt"
    openssl x509 -in "$dir/$name.crt" -noout -checkhost "fluxqueue-$name.$SYSTEM.svc" | grep 'does match'
  done
  openssl verify -CAfile "$dir/queue.ca" -purpose sslserver "$dir/queue.crt" "$dir/graph.crt" "$dir/visibility.crt"
  sed -n 's/^  caBundle: //p' <(sed -n '/^kind: APIService/,/^---/p' "$dir/trial.yaml") | base64 -d | cmp - "$dir/queue.ca"
}

# Each service logs in with a role and a password of its own, which no other pod has.
accounts() {
  local name
  for name in admission queue matcher binder cleanup graph cli; do
    sed -n "/^kind: Deployment\$/,/^---/{/^  name: fluxqueue-$name\$/,/^---/p}" "$dir/trial.yaml" >"$dir/$name.yaml"
    [[ $(grep -c "{name: PGUSER, value: fluxqueue_$name}" "$dir/$name.yaml") == 1 ]] || die "$name has no role"
    [[ $(sed -n 's/.*name: fluxqueue-postgres, key: //p' "$dir/$name.yaml") == "$name}}" ]] || die "$name has another's password"
    secret fluxqueue-postgres $name
    echo
  done >"$dir/passwords"
  secret fluxqueue-postgres password >>"$dir/passwords"
  [[ $(sort -u "$dir/passwords" | grep -cE '^[a-zA-Z0-9]{32}$') == 8 ]] || die "passwords are alike"
}

trial() {
  accepted trial --set $TRIAL
  grep -q 'host=fluxqueue-postgres' "$dir/trial.yaml"
  grpc_certificates
  accounts
}

# egress OPTION…: the ports of Kafka, Postgres and the collector of traces that the NetworkPolicy lets out to.
egress() {
  helm template fluxqueue "$chart" "$@" --show-only templates/networkpolicy.yaml |
    sed -n '/# Kafka, Postgres/,/^---/s/.*{port: \([0-9]*\)}/\1/p' | paste -sd' '
}

external() {
  cat >"$dir/values.yaml" <<END
image: {registry: registry.example/hpc, tag: "1.2", pullSecrets: [pull]}
kafka: {bootstrap: "k1:9093,k2:9093", existingSecret: kafka, ports: [9094]}
postgres: {dsn: host=db port=6432 dbname=fluxqueue user=u sslmode=verify-full, existingSecret: db, tlsSecret: db-ca}
webhook:
  certificate: {existingSecret: webhook, caBundle: Y2E=}
  clientAuthority: {configMap: webhook-clients, names: [api-server]}
grpc: {certificates: existing, clients: [fluence.hpc.svc]}
visibility: {caBundle: Y2E=}
cleanup: {replicas: 1}
queue: {config: {retention: 24h, grpc: {port: 9201}}}
matcher: {image: "example/matcher-fluxion:1", config: {fluxion: {library: /usr/lib/flux/libreapi_cli.so}}}
autoscaling: {by: cpu}
networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}
tracing: {endpoint: "http://collector.monitoring:4318"}
podLabels: {team: hpc}
podAnnotations: {note: x}
nodeSelector: {pool: system}
tolerations: [{key: system, operator: Exists}]
END
  accepted external --values "$dir/values.yaml"
  grep -q 'image: registry.example/hpc/fluxqueue/queue:1.2$' "$dir/external.yaml"
  grep -q 'port: 9201' "$dir/external.yaml"
  [[ $(grep -c -- '- fluence.hpc.svc' "$dir/external.yaml") == 2 ]]
  # Who may call has rights; and the graph service is not called by the command line.
  grep -q 'name: fluxqueue:client:fluence.hpc.svc' "$dir/external.yaml"
  grep -q 'name: fluxqueue:client:fluxqueue-cli\.' "$dir/external.yaml"
  [[ $(grep -cE -- '- fluxqueue-cli\..*\.svc$' "$dir/external.yaml") == 1 ]]
  if grep -q 'ancestors:' "$dir/external.yaml"; then die "the ancestors' services are open"; fi
  if grep -A2 '^kind: Secret' "$dir/external.yaml" | grep fluxqueue-grpc; then die "a Secret of ours is in the way of yours"; fi
  grep -q 'client_authority: /etc/fluxqueue/webhook-clients/ca.crt' "$dir/external.yaml"
  grep -q 'configMap: {name: webhook-clients}' "$dir/external.yaml"
  [[ $(grep -c 'tracing: {endpoint: "http://collector.monitoring:4318"}' "$dir/external.yaml") == 7 ]]
  [[ $(egress --values "$dir/values.yaml") == "9093 9094 6432 4318" ]]
  [[ $(egress --values "$dir/values.yaml" --set postgres.dsn=postgresql://u@db:7432/d) == "9093 9094 7432 4318" ]]
  [[ $(egress --set $TRIAL) == "9092 5432" ]]
  [[ $(grep -c 'kind: HorizontalPodAutoscaler' "$dir/external.yaml") == 3 ]]
  # One replica needs no budget, and would never let its node be drained with one.
  [[ $(grep -c 'kind: PodDisruptionBudget' "$dir/external.yaml") == 6 ]]
  # Kafka and Postgres are there before the release is: so may the hook be.
  helm template fluxqueue "$chart" --values "$dir/values.yaml" --show-only templates/prepare.yaml >"$dir/prepare.yaml"
  kubectl apply --dry-run=server -f "$dir/prepare.yaml"
  [[ $(grep -c 'helm.sh/hook: pre-install,pre-upgrade' "$dir/prepare.yaml") == 2 ]]
  # The chart's PriorityClass is not there before the release is.
  if grep priorityClassName "$dir/prepare.yaml"; then die "the hook waits for a PriorityClass that comes later"; fi
  kubectl create priorityclass fluxqueue-services --value 900000000
  helm template fluxqueue "$chart" --values "$dir/values.yaml" --show-only templates/prepare.yaml --dry-run=server |
    grep 'priorityClassName: fluxqueue-services'
  kubectl delete priorityclass fluxqueue-services
}

# accounts_of NAME: the Secrets that its containers get something of.
accounts_of() {
  sed -n "/^kind: Deployment\$/,/^---/{/^  name: fluxqueue-$1\$/,/^---/p}" "$dir/own.yaml" |
    sed -nE 's/.*(secretName: (kafka[a-z-]*)|secretKeyRef: \{name: (db, key: [a-z]*)).*/\2\3/p' | sort | paste -sd' '
}

# Kafka and Postgres of one's own, where each service has an account.
own_accounts() {
  local name
  accepted own --set image.registry=registry.example,kafka.bootstrap=k:9092,kafka.existingSecret=kafka,kafka.accountPerService=true \
    --set postgres.dsn=host=db,postgres.existingSecret=db,postgres.accountPerService=true
  for name in admission queue matcher binder cleanup cli; do
    [[ $(accounts_of $name) == "db, key: $name kafka-$name" ]] || die "$name has: $(accounts_of $name)"
  done
  [[ $(accounts_of graph) == "db, key: graph" ]] || die "graph has: $(accounts_of graph)"
  if grep -E 'name: kafka[,}]|key: password' "$dir/own.yaml"; then die "somebody has the account of all"; fi
}

# Whose a pod is where its row is lost: the binder alone has the key.
proofs() {
  [[ $(grep -c 'secretName: fluxqueue-binder-proof' "$dir/trial.yaml") == 1 ]] || die "not one pod has the key of the proofs"
  [[ $(secret fluxqueue-binder-proof proof.key | wc -c) == 32 ]] || die "the key of the proofs is not made"
  accepted proof --set $TRIAL --set binder.proofSecret=mine
  grep -q 'secretName: mine' "$dir/proof.yaml"
  if grep fluxqueue-binder-proof "$dir/proof.yaml"; then die "another key is made"; fi
}

# kept SECRET SECONDS: it is in the cluster as the trial has it, made so long ago.
kept() {
  awk -v name="  name: $1" 'BEGIN { RS = "---\n" } /\nkind: Secret\n/ && index($0, "\n" name "\n")' "$dir/trial.yaml" |
    kubectl apply -n $SYSTEM -f - >&2
  kubectl annotate -n $SYSTEM secret "$1" --overwrite fluxqueue.io/made=$(($(date +%s) - $2))
}

# upgraded: the trial, as an upgrade would make it.
upgraded() {
  helm template fluxqueue "$chart" --no-hooks --set $TRIAL --dry-run=server >"$dir/trial.yaml"
}

# Certificates that the chart has made stay, until a year is left: then all of one authority are made anew, and what the one
# before has signed is believed as long as it is shown.
renewals() {
  local name names=(webhook grpc-queue grpc-graph grpc-visibility grpc-cli)
  for name in "${names[@]}"; do
    secret "fluxqueue-$name" tls.crt >"$dir/$name.first"
    kept "fluxqueue-$name" $((9 * 365 * 86400 - 3600))
  done
  upgraded
  for name in "${names[@]}"; do
    secret "fluxqueue-$name" tls.crt | cmp - "$dir/$name.first" || die "$name is made anew while it holds"
  done
  # One that has no annotation is as old as its Secret.
  kubectl annotate -n $SYSTEM secret fluxqueue-webhook fluxqueue.io/made-
  kubectl annotate -n $SYSTEM secret fluxqueue-grpc-graph --overwrite fluxqueue.io/made=$(($(date +%s) - 9 * 365 * 86400 - 3600))
  upgraded
  secret fluxqueue-webhook tls.crt | cmp - "$dir/webhook.first"
  grpc_certificates
  for name in "${names[@]:1}"; do
    secret "fluxqueue-$name" tls.crt >"$dir/$name.second"
    if cmp -s "$dir/$name.first" "$dir/$name.second"; then die "$name is not renewed with the others"; fi
    openssl verify -CAfile "$dir/queue.ca" "$dir/$name.first" "$dir/$name.second"
  done
  kubectl annotate -n $SYSTEM secret fluxqueue-webhook fluxqueue.io/made=1
  upgraded
  secret fluxqueue-webhook ca.crt >"$dir/webhook.ca"
  openssl verify -CAfile "$dir/webhook.ca" "$dir/webhook.first" <(secret fluxqueue-webhook tls.crt)
  sed -n 's/^ *caBundle: //p' <(sed -n '/^kind: MutatingWebhookConfiguration/,/^---/p' "$dir/trial.yaml") | sort -u | base64 -d |
    cmp - "$dir/webhook.ca"
  kubectl delete -n $SYSTEM secret "${names[@]/#/fluxqueue-}"
}

# Each service has its own key, and all know who signs.
signed_logs() {
  local name keys
  accepted signed --set $TRIAL --set kafka.signing=check
  for name in admission queue matcher binder cleanup cli; do
    keys=$(sed -n "/^kind: Deployment\$/,/^---/{/^  name: fluxqueue-$name\$/,/^---/p}" "$dir/signed.yaml" |
      sed -nE 's/.*(secretName|configMap: \{name): (fluxqueue-signing-[a-z]*).*/\2/p' | sort -u | paste -sd' ')
    [[ $keys == *"fluxqueue-signing-$name"* && $(wc -w <<<"$keys") == 2 && $keys == *fluxqueue-signing-keys* ]] ||
      die "$name has: $keys"
  done
  [[ $(grep -c '^  [a-z]*.pem: |' "$dir/signed.yaml") == 6 ]]
  accepted signing-first --set $TRIAL --set kafka.signing=sign,kafka.signingKeys=existing
  if grep -E 'keys: /etc|^  name: fluxqueue-signing-' "$dir/signing-first.yaml"; then die "keys are checked, or made"; fi
  refused kafka.signing=yes signing
}

# What the logs hold is kept in a volume that outlives the release, or in one of yours.
archive() {
  accepted archive --set $TRIAL --set archive.enabled=true,archive.size=5Gi,archive.storageClass=slow
  grep -q 'args: \["events","archive"\]' "$dir/archive.yaml"
  grep -qx '    archive: {folder: "/var/lib/fluxqueue/archive"}' "$dir/archive.yaml"
  [[ $(grep -c 'claimName: fluxqueue-archive}' "$dir/archive.yaml") == 1 ]] || die "not one pod has the volume"
  sed -n '/^kind: PersistentVolumeClaim$/,/^---/p' "$dir/archive.yaml" >"$dir/claim.yaml"
  grep -q 'helm.sh/resource-policy: keep' "$dir/claim.yaml"
  grep -q 'storage: 5Gi' "$dir/claim.yaml"
  grep -q 'storageClassName: slow' "$dir/claim.yaml"
  accepted archive-yours --set $TRIAL --set archive.enabled=true,archive.existingClaim=mine
  grep -q 'claimName: mine}' "$dir/archive-yours.yaml"
  if grep '^kind: PersistentVolumeClaim$' "$dir/archive-yours.yaml"; then die "another claim is made"; fi
  if grep -E 'fluxqueue-archive|/archive' "$dir/trial.yaml"; then die "there is one that was not asked for"; fi
  accepted archive-s3 --set $TRIAL \
    --set archive.enabled=true,archive.s3.url=s3://logs/a,archive.s3.endpoint=https://s3.example.com:9000,archive.s3.secret=keys
  grep -qx '    archive: {folder: "s3://logs/a"}' "$dir/archive-s3.yaml"
  [[ $(grep -c 'secretRef: {name: keys}' "$dir/archive-s3.yaml") == 2 ]] || die "not both pods have the keys"
  if grep -E '^kind: PersistentVolumeClaim$|claimName: fluxqueue-archive' "$dir/archive-s3.yaml"; then die "there is a volume"; fi
  grep -q 'ports: \[{port: 9000}\]' "$dir/archive-s3.yaml"
  refused archive.s3.url=s3://logs "archive.s3.endpoint: where the store is"
  refused archive.enabled=true,cli.enabled=false "archive.enabled: the command line fills it"
}

operators() {
  accepted operators --set $TRIAL --set webhook.certificate.certManager.enabled=true,grpc.certificates=certManager \
    --set autoscaling.by=lag,autoscaling.prometheus=http://prometheus:9090 \
    --set monitoring.serviceMonitor=true,monitoring.rules=true,monitoring.dashboards=true \
    --set monitoring.runbookUrlPrefix=https://wiki.example/runbooks/
  local kind rules=$chart/rules/fluxqueue.yaml
  foreign 1 <"$dir/operators.yaml" >"$dir/foreign.yaml"
  for kind in Certificate Issuer ScaledObject ServiceMonitor; do
    grep -qx "kind: $kind" "$dir/foreign.yaml" || die "there is no $kind"
  done
  # What the API server trusts is the authority, by whose name every certificate is signed.
  [[ $(grep -A1 'isCA: true' "$dir/foreign.yaml" | sed -n 's/.*commonName: //p' | sort | paste -sd' ') == "fluxqueue-grpc-ca fluxqueue-webhook-ca" ]]
  [[ $(grep -c 'usages: .*client auth' "$dir/foreign.yaml") == 4 ]]
  grep -q 'ca: {secretName: fluxqueue-webhook-ca}' "$dir/foreign.yaml"
  diff <(sed -n 's|.*runbook_url: deploy/docs/|https://wiki.example/|p' "$rules") \
    <(sed -n 's|.*runbook_url: ||p' "$dir/operators.yaml") || die "the links of the alerts are others"
}

without() {
  accepted without --set $TRIAL --set cli.enabled=false,visibility.enabled=false,graph.enabled=false,networkPolicy.enabled=false,webhook.enabled=false \
    --set hooks.prepare=false,priorityClass.create=false,priorityClass.name=system-cluster-critical \
    --set flowSchema.enabled=false,podDisruptionBudget.enabled=false,defaultQueue=null
  if grep -q 'fluxqueue-graph$' "$dir/without.yaml"; then die "the graph service is there"; fi
  if grep -q 'graph: fluxqueue-graph' "$dir/without.yaml"; then die "the queue lets in a graph service that is not there"; fi
  ! grep -qE 'kind: (APIService|NetworkPolicy|MutatingWebhookConfiguration|PriorityClass|FlowSchema|PodDisruptionBudget|FluxQueue)$' \
    "$dir/without.yaml"
}

# checksums OPTION…: of the configurations, one for each service.
checksums() { helm template fluxqueue "$chart" --set $TRIAL "$@" | grep checksum/config; }

# A changed level needs no other pods, any other change does.
level() {
  [[ $(checksums --set log.level=debug) == "$(checksums)" ]] || die "another level would replace the pods"
  if checksums --set log.format=text | grep -Ff <(checksums --show-only templates/services.yaml); then
    die "another format would not reach all services"
  fi
}

# images OPTION…: the names of all images, each with when it is pulled.
images() {
  helm template fluxqueue "$chart" --set $TRIAL "$@" |
    awk '/^ *image:/ { image = $2 } /^ *imagePullPolicy:/ { print image, $2 }' | sort -u
}

# Each name says whose the image is: nothing is left to the registry that a node asks by itself.
image_names() {
  local service digest pinned names
  digest=sha256:$(sha256sum </dev/null | cut -d' ' -f1)
  refused image.registry= "image.registry: say where Fluxqueue's images are, such as image.registry=registry.example/hpc"
  refused image.registry=hpc "/image/registry"
  refused image.digests.queue=sha256:12 "/image/digests/queue"
  refused "image.digests.broker=$digest" "'broker' not allowed"
  refused kafka.bundled.image=apache/kafka@sha256:12 "/kafka/bundled/image"
  refused postgres.bundled.image=postgres@12 "/postgres/bundled/image"
  if names=$(images | grep -v '^registry.example/fluxqueue/\|^docker.io/'); then die "nobody's: $names"; fi
  [[ $(images --set image.registry=localhost --show-only templates/services.yaml --show-only templates/cli.yaml |
    sort -u -k2) == "localhost/fluxqueue/admission:$version Never" ]] || die "an image of localhost is asked for elsewhere"
  for service in admission queue matcher binder cleanup visibility graph cli; do
    printf 'image: {digests: {%s: "%s"}}\n' $service "$digest" >"$dir/$service.digest.yaml"
    names=$(images --values "$dir/$service.digest.yaml")
    [[ $(grep "/$service:" <<<"$names") == "registry.example/fluxqueue/$service:$version@$digest IfNotPresent" ]] ||
      die "not only by digest: $names"
  done
  pinned=$(images --set "kafka.bundled.image=docker.io/apache/kafka@$digest,postgres.bundled.image=docker.io/library/postgres@$digest")
  [[ $(grep -c "docker.io/.*@$digest " <<<"$pinned") == 2 ]] || die "Kafka and Postgres are not by digest: $pinned"
}

bad_values() {
  refused kafka.boostrap=x:1 "'boostrap' not allowed"
  refused queue.replicas=0 "/queue/replicas"
  refused log.level=loud "'debug', 'info', 'warning', 'error'"
  refused monitoring.runbookUrlPrefix=runbooks "/monitoring/runbookUrlPrefix"
  refused kafka.bootstrap=nowhere "/kafka/bootstrap"
  refused autoscaling.by=lag "autoscaling.prometheus: by lag needs"
  refused autoscaling.minReplicas=7 "autoscaling.minReplicas: 7 is more than maxReplicas, 6"
  refused tracing.endpoint=collector:4318 "/tracing/endpoint"
  refused grpc.certificates=existing "visibility.caBundle: say who has signed"
  refused grpc.certificates=none "'chart', 'certManager', 'existing'"
  refused 'grpc.clients={a.b.svc}' "grpc.clients: the authority that the chart makes signs for nobody else"
  refused webhook.certificate.existingSecret=mine "webhook.certificate.caBundle: say"
  refused kafka.bundled.enabled=false "kafka.bootstrap: say where Kafka is"
  refused postgres.bundled.enabled=false "postgres.dsn: say where the database is"
  refused 'kafka.bundled.enabled=false,kafka.bootstrap=u:y@k:9092' "kafka.existingSecret"
  refused kafka.accountPerService=true "kafka.existingSecret: with kafka.accountPerService"
  refused tracing.endpoint=http://u:y@c:4318 "tracing.endpoint: everybody can read it"
  refused 'tracing.endpoint=http://c?token=y:4318' "tracing.endpoint: everybody can read it"
  [[ $(helm template x "$chart" --namespace other --set $TRIAL 2>&1) == *"--namespace fluxqueue-system"* ]]
}

# A password in the forms that libpq takes, and TLS that may be left out.
bad_dsns() {
  local dsn
  for dsn in 'host=x password=y' $'host=x password\t = y' 'host=x PASSWORD=y' "host=x password = 'y z'" 'host=x sslpassword=y' \
    postgresql://u:y@db/d 'postgres://u:y@db?a=b' postgres://:y@db 'postgres://u:y?z@db/d' 'postgres://u:y/z@db/d' \
    'postgresql://u@db/d?password=y' 'postgresql://u@db/d?%70assword=y' \
    "host=x dbname='host=x password=y'" 'host=x dbname=postgresql://u:y@db/d' 'postgresql://u@db/host%3Ddb%20%70assword%3Dy'; do
    refused "postgres.bundled.enabled=false,postgres.dsn=$dsn" "postgres.existingSecret"
  done
  for dsn in 'host=db sslmode=prefer' "host=db sslmode = 'allow'" 'postgresql://u@db/d?sslmode=prefer'; do
    refused "postgres.bundled.enabled=false,postgres.dsn=$dsn" "goes on in plain text"
  done
  for dsn in 'host=db user=u' 'user = u host=db' postgresql://u@db/d 'postgresql://db/d?user=u'; do
    refused "postgres.bundled.enabled=false,postgres.accountPerService=true,postgres.dsn=$dsn" "it names no user"
  done
  for dsn in 'host=db passfile=/etc/fluxqueue/postgres/pgpass' postgresql://u@db:5432/d 'host=db sslmode=disable'; do
    helm template fluxqueue "$chart" --set "$TRIAL,postgres.bundled.enabled=false,postgres.dsn=$dsn" >/dev/null
  done
}

# notes OPTION…: what an installation says at its end.
notes() { helm install fluxqueue "$chart" --dry-run "$@" | sed '1,/^NOTES:/d'; }

# Who says that TLS is not to be, or not to be whole, or has one account for all, is told at each installation what that means.
said_aloud() {
  local external=image.registry=registry.example,kafka.bootstrap=k:9092,postgres.dsn=host=db
  if notes --set "$external" | grep 'default is'; then die "what is the default is warned of"; fi
  [[ $(notes --set "$external sslmode=disable") == *"sslmode=disable: passwords and rows go in plain text"* ]]
  [[ $(notes --set "$external sslmode=require") == *"sslmode=require: whoever answers is taken"* ]]
  [[ $(notes --set "$external") == *"share one account in Postgres"*"share one account in Kafka"* ]]
  if notes --set "$external,postgres.accountPerService=true,kafka.accountPerService=true,kafka.existingSecret=x" | grep 'share one'; then
    die "each has its own, and it is warned of"
  fi
  if notes --set $TRIAL | grep 'share one'; then die "a trial is warned of what it has not got"; fi
  [[ $(notes --set "${external/k:/plaintext://k:}") == *"plaintext://: records go in plain text"* ]]
}

# crds_refused CHART: it ends with what to do.
crds_refused() {
  local said
  if said=$(helm install fluxqueue "$1" --set $TRIAL --dry-run=server 2>&1); then
    die "older CRDs are taken"
  fi
  [[ $said == *"fluxqueues.fluxqueue.io"*"helm show crds"* ]] || die "$said"
}

# An upgrade does not begin before the CRDs are those of the chart.
old_crds() {
  helm install fluxqueue "$chart" --set $TRIAL --dry-run=server >/dev/null
  kubectl patch crd fluxqueues.fluxqueue.io --type json \
    -p '[{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/agingPeriod"}]'
  crds_refused "$chart"
  helm show crds "$chart" | kubectl apply --server-side --force-conflicts -f -
  helm install fluxqueue "$chart" --set $TRIAL --dry-run=server >/dev/null
  # A chart with one version more, before the one that is known.
  cp -r "$chart" "$dir/newer"
  kubectl patch --local --filename "$chart/crds/fluxqueues.yaml" --output yaml --type json --patch '[
    {"op": "copy", "from": "/spec/versions/0", "path": "/spec/versions/0"},
    {"op": "replace", "path": "/spec/versions/0/name", "value": "v1beta1"}]' >"$dir/newer/crds/fluxqueues.yaml"
  crds_refused "$dir/newer"
}

# rendered_of KIND NAME: of the trial.
rendered_of() {
  awk -v kind="kind: $1" -v name="  name: $2" 'BEGIN { RS = "---\n" } index($0, kind "\n") && index($0, "\n" name "\n")' "$dir/trial.yaml"
}

# The passwords are made once. Without them nothing can be done to a database that runs, and an upgrade says so before it
# waits for its hook in vain.
lost_passwords() {
  local said
  rendered_of StatefulSet fluxqueue-postgres | kubectl create -f -
  if said=$(helm template fluxqueue "$chart" --set $TRIAL --dry-run=server 2>&1 >/dev/null); then
    die "an upgrade goes on with passwords that nobody knows"
  fi
  [[ $said == *"hooks.prepare=false"*"rollout restart statefulset/fluxqueue-postgres"* ]] || die "$said"
  helm template fluxqueue "$chart" --set $TRIAL,hooks.prepare=false --dry-run=server >/dev/null
  rendered_of Secret fluxqueue-postgres | kubectl create -f -
  helm template fluxqueue "$chart" --set $TRIAL --dry-run=server >"$dir/kept.yaml"
  grep -q "  password: $(secret fluxqueue-postgres password | base64 -w 0)" "$dir/kept.yaml"
  kubectl delete --namespace $SYSTEM statefulset/fluxqueue-postgres secret/fluxqueue-postgres
}

# More rows of groups.yaml come with the right to read what they name.
groups() {
  local row="- {name: [example.com/set], object: {group: example.com, version: v1, resource: sets}, pods: [{count: 2}]}"
  helm template fluxqueue "$chart" --set $TRIAL --set-json "admission.config.groups=\"$row\"" \
    --show-only templates/rbac/admission.yaml >"$dir/groups.yaml"
  grep -A 2 'apiGroups: \[example.com\]' "$dir/groups.yaml" | tr -d '\n' | grep 'resources: \[sets\] *verbs: \[get\]$'
}

version=$(sed -n 's/^appVersion: //p' "$chart/Chart.yaml")
helm=$(helm_home "$tools")/helm kubectl=$(kubernetes_home "$tools")/kubectl
steps_log_dir "$dir/logs"
step "the control plane" start
step_async "rendered files" "$tools/render" --check
step_async "bad values" bad_values
step_async "names of images" image_names
step_async "rows of groups.yaml" groups
step_async "bad DSNs" bad_dsns
step_async "connections without TLS are said aloud" said_aloud
step_async "log level" level
steps_wait
step "trial" trial
step "passwords that were lost" lost_passwords
step "external" external
step "an account for each service" own_accounts
step "proofs of slots" proofs
step "certificates of the chart are renewed" renewals
step "signed logs" signed_logs
step "the archive" archive
step "operators" operators
step "without what can be left out" without
step "CRDs of another version" old_crds
