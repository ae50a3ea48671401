# shellcheck shell=bash
# shellcheck disable=SC2154
# The chart with Kafka and PostgreSQL of a site's own, outside of the cluster: steps of kubelet_test.sh, which sources this.

readonly SITE_ADDRESS=10.88.0.2 PASSWORD=correct-horse WRONG=battery-staple

# secret NAME OPTION…: as "kubectl create secret generic" makes it, in the place of what is there.
secret() { kubectl create secret generic "$@" --namespace "$SYSTEM" --dry-run=client -o yaml | kubectl apply -f -; }

readonly ACCOUNTS=(admission queue matcher binder cleanup cli)

# kafka_secrets MECHANISM PASSWORD AUTHORITY, as deploy/helm/fluxqueue/README.md has them, one for each service.
kafka_secrets() {
  local account
  for account in "${ACCOUNTS[@]}"; do
    cat >"$dir/client.properties" <<END
security.protocol=SASL_SSL
sasl.mechanism=$1
sasl.username=$account
sasl.password=$2-$account
ssl.ca.location=/etc/fluxqueue/kafka/ca.crt
END
    secret "kafka-$account" --from-file "$dir/client.properties" --from-file "ca.crt=$3"
  done
}

# postgres_secret PASSWORD
postgres_secret() {
  local account passwords=()
  for account in "${ACCOUNTS[@]}" graph; do
    passwords+=(--from-literal "$account=$1-$account")
  done
  secret postgres "${passwords[@]}"
}

start_site() {
  ip address add $SITE_ADDRESS/24 dev machine
  printf '%s kafka.site.example db.site.example\n' $SITE_ADDRESS >"$dir/node/hosts/site"
  "$here/node/site" "$dir/site" $SITE_ADDRESS $PASSWORD
  secret postgres-ca --from-file "$dir/site/pki/ca.crt"
  cat >"$dir/values.yaml" <<END
image: {registry: localhost, tag: $tag}
kafka: {bootstrap: "kafka.site.example:9093", existingSecret: kafka, accountPerService: true, signing: check}
postgres:
  accountPerService: true
  dsn: host=db.site.example dbname=batch sslmode=verify-full sslrootcert=/etc/fluxqueue/postgres/ca.crt
  existingSecret: postgres
  tlsSecret: postgres-ca
hooks: {timeoutSeconds: 20}
nodeSelector: {kubernetes.io/hostname: $NODE}
END
}

# fails COMMAND TEXT…: the chart's installation by COMMAND fails within a minute and shows each TEXT, and no password.
fails() {
  local command text
  read -ra command <<<"$1"
  if chart "${command[@]}" --timeout 1m >"$dir/said" 2>&1; then
    die "it is installed, with a bad Secret"
  fi
  cat "$dir/said"
  for text in "${@:2}"; do
    grep -qF "$text" "$dir/said" || die "helm install does not say: $text"
  done
  if grep -e $PASSWORD -e $WRONG "$dir/said"; then die "a password is in the log"; fi
}

bad_secrets() {
  local authority=$dir/site/pki/ca.crt
  kafka_secrets PLAIN $PASSWORD "$authority"
  postgres_secret $WRONG
  fails install "password authentication failed" PGPASSWORD
  postgres_secret $PASSWORD
  kafka_secrets SCRAM-SHA-512 $WRONG "$authority"
  fails "upgrade --install" "invalid credentials" /etc/fluxqueue/kafka/client.properties
  helm uninstall fluxqueue
  kafka_secrets PLAIN $PASSWORD "$dir/cluster/pki/ca.crt"
  fails install "certificate verify failed" /etc/fluxqueue/kafka/client.properties
  helm uninstall fluxqueue
  kafka_secrets SCRAM-SHA-512 $PASSWORD "$authority"
}

# The hook makes tables and topics before anything else is there, with the few rights that each service's account has.
install_on_site() {
  chart install
  kubectl delete job real --namespace work
  a_real_job
  kubectl exec --namespace "$SYSTEM" deploy/fluxqueue-cli -- fluxqueue doctor | tee "$dir/said"
  grep -qE '^ok +accounts in Postgres +one for each service$' "$dir/said" || die "doctor does not see each service's account"
  helm test fluxqueue
}

# verify_with PORT LINE…: from where people are, with their own program, and these client.properties.
verify_with() {
  cat >"$dir/fluxqueue.yaml" <<END
postgres: {dsn: "host=db.site.example dbname=batch user=fluxqueue_cli sslmode=verify-full sslrootcert=$dir/site/pki/ca.crt"}
kafka: {bootstrap: "kafka.site.example:$1", properties: "$dir/client.properties"}
kubernetes: {kubeconfig: "$KUBECONFIG"}
END
  printf '%s\n' "ssl.ca.location=$dir/site/pki/ca.crt" "${@:2}" >"$dir/client.properties"
  PGPASSWORD=$PASSWORD-cli "$programs/fluxqueue" --config "$dir/fluxqueue.yaml" verify
}

# Kafka knows the command line by a certificate, too, and by the password as it is.
other_credentials() {
  local user=$dir/site/pki/cli
  verify_with 9094 security.protocol=SSL "ssl.certificate.location=$user.crt" "ssl.key.location=$user.key"
  verify_with 9093 security.protocol=SASL_SSL sasl.mechanism=PLAIN sasl.username=cli "sasl.password=$PASSWORD-cli"
}

# hold_with LINE: a job is held from where people are, with their own program, and this line on how the queue is called.
hold_with() {
  cat >"$dir/fluxqueue.yaml" <<END
postgres: {dsn: "host=db.site.example dbname=batch user=fluxqueue_cli sslmode=verify-full sslrootcert=$dir/site/pki/ca.crt"}
kafka: {bootstrap: "kafka.site.example:9093", properties: "$dir/client.properties"}
$1
END
  PGPASSWORD=$PASSWORD-cli "$programs/fluxqueue" --config "$dir/fluxqueue.yaml" hold work/waits
}

# not_held TEXT LINE: this is what it says instead.
not_held() {
  if hold_with "$2" >"$dir/said" 2>&1; then die "anybody may hold a job"; fi
  cat "$dir/said"
  grep -qF "$1" "$dir/said" || die "it does not say: $1"
}

cli() { kubectl exec --namespace "$SYSTEM" deploy/fluxqueue-cli -- fluxqueue "$@"; }
waits_is() { cli job work/waits | grep -F "$1"; }

# Here everybody reaches the port, and who shows a certificate of ours is let in.
callers() {
  kubectl create --namespace work -f - <<END
apiVersion: batch/v1
kind: Job
metadata: {name: waits}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {type: nowhere}
      containers: [{name: c, image: none, resources: {requests: {cpu: "1"}}}]
END
  wait_until 30 "the job to wait" waits_is Unsatisfiable
  local name=fluxqueue-queue.$SYSTEM.svc
  kubectl get secret --namespace "$SYSTEM" fluxqueue-grpc-cli -o jsonpath='{.data.ca\.crt}' | base64 -d >"$dir/grpc-ca.crt"
  not_held "does not say who makes it" "grpc: {authority: $dir/grpc-ca.crt, name: $name}"
  not_held "failed to connect" ""
  not_held "failed to connect" "grpc: {authority: $dir/site/pki/ca.crt, name: $name}"
  cli hold work/waits
  wait_until 30 "the job to be held" waits_is Held
  cli cancel work/waits
  wait_until 30 "the job to be cancelled" waits_is "cancelled by fluxqueue:client:fluxqueue-cli.$SYSTEM.svc"
  kubectl delete job --namespace work waits
}

uninstall_from_site() {
  kubectl delete secret --namespace "$SYSTEM" "${ACCOUNTS[@]/#/kafka-}" postgres postgres-ca
  uninstall
}
