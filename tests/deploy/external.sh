# shellcheck shell=bash
# shellcheck disable=SC2154
# The chart with Kafka and PostgreSQL of a site's own, outside of the cluster: steps of kubelet_test.sh, which sources this.

readonly SITE_ADDRESS=10.88.0.2 PASSWORD=correct-horse WRONG=battery-staple

# secret NAME OPTION…: as "kubectl create secret generic" makes it, in the place of what is there.
secret() { kubectl create secret generic "$@" --namespace "$SYSTEM" --dry-run=client -o yaml | kubectl apply -f -; }

# kafka_secret MECHANISM PASSWORD AUTHORITY, as deploy/helm/fluxqueue/README.md has it.
kafka_secret() {
  cat >"$dir/client.properties" <<END
security.protocol=SASL_SSL
sasl.mechanism=$1
sasl.username=batch
sasl.password=$2
ssl.ca.location=/etc/fluxqueue/kafka/ca.crt
END
  secret kafka --from-file "$dir/client.properties" --from-file "ca.crt=$3"
}

start_site() {
  ip address add $SITE_ADDRESS/24 dev machine
  printf '%s kafka.site.example db.site.example\n' $SITE_ADDRESS >"$dir/node/hosts/site"
  "$here/node/site" "$dir/site" $SITE_ADDRESS $PASSWORD
  secret postgres-ca --from-file "$dir/site/pki/ca.crt"
  cat >"$dir/values.yaml" <<END
image: {tag: $tag, pullPolicy: Never}
kafka: {bootstrap: "kafka.site.example:9093", existingSecret: kafka}
postgres:
  dsn: host=db.site.example dbname=batch user=batch sslmode=verify-full sslrootcert=/etc/fluxqueue/postgres/ca.crt
  existingSecret: postgres
  tlsSecret: postgres-ca
hooks: {timeoutSeconds: 5}
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
  kafka_secret PLAIN $PASSWORD "$authority"
  secret postgres --from-literal password=$WRONG
  fails install "password authentication failed" PGPASSWORD
  secret postgres --from-literal password=$PASSWORD
  kafka_secret SCRAM-SHA-512 $WRONG "$authority"
  fails "upgrade --install" "invalid credentials" /etc/fluxqueue/kafka/client.properties
  helm uninstall fluxqueue
  kafka_secret PLAIN $PASSWORD "$dir/cluster/pki/ca.crt"
  fails install "certificate verify failed" /etc/fluxqueue/kafka/client.properties
  helm uninstall fluxqueue
  kafka_secret SCRAM-SHA-512 $PASSWORD "$authority"
}

# The hook makes tables and topics before anything else is there, with the few rights that the user has.
install_on_site() {
  chart install
  kubectl delete job real --namespace work
  a_real_job
  kubectl exec --namespace "$SYSTEM" deploy/fluxqueue-cli -- fluxqueue doctor
  helm test fluxqueue
}

# verify_with PORT LINE…: from where people are, with their own program, and these client.properties.
verify_with() {
  cat >"$dir/fluxqueue.yaml" <<END
postgres: {dsn: "host=db.site.example dbname=batch user=batch sslmode=verify-full sslrootcert=$dir/site/pki/ca.crt"}
kafka: {bootstrap: "kafka.site.example:$1", properties: "$dir/client.properties"}
kubernetes: {kubeconfig: "$KUBECONFIG"}
END
  printf '%s\n' "ssl.ca.location=$dir/site/pki/ca.crt" "${@:2}" >"$dir/client.properties"
  PGPASSWORD=$PASSWORD "$programs/fluxqueue" --config "$dir/fluxqueue.yaml" verify
}

# Kafka knows the user by a certificate, too, and by the password as it is.
other_credentials() {
  local user=$dir/site/pki/batch
  verify_with 9094 security.protocol=SSL "ssl.certificate.location=$user.crt" "ssl.key.location=$user.key"
  verify_with 9093 security.protocol=SASL_SSL sasl.mechanism=PLAIN sasl.username=batch "sasl.password=$PASSWORD"
}

uninstall_from_site() {
  kubectl delete secret --namespace "$SYSTEM" kafka postgres postgres-ca
  uninstall
}
