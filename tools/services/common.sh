# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154
# What tools/services and tools/stack share. Sourced after log.sh, proc.sh and cache.sh; where kube is used, `dir`
# is the stack's folder.

# In the order of a job's way through them.
readonly PIPELINE=(admission queue matcher binder cleanup)
# With the front of the queue behind the API server, and the graphs for those who ask.
readonly SERVICES=("${PIPELINE[@]}" visibility graph)
readonly SYSTEM_NAMESPACE=fluxqueue-system
REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly REPOSITORY

# service_program NAME: FLUXQUEUE_BIN names the folder of another build.
service_program() {
  realpath -m "${FLUXQUEUE_BIN:-$REPOSITORY/.build/release/bin}/fluxqueue-$1"
}

# kube ARGUMENT…: kubectl on the stack's cluster, as its administrator.
kube() {
  "$(kubectl_program "$REPOSITORY/tools")" --kubeconfig "$dir/kubeconfig" --request-timeout 30s "$@"
}

# check_service NAME REPLICA
check_service() {
  [[ " ${SERVICES[*]} " == *" $1 "* ]] || die "unknown service '$1': wanted one of ${SERVICES[*]}"
  [[ $2 =~ ^[1-9][0-9]{0,2}$ ]] || die "--replica '$2': wanted a number from 1 to 999"
}

# The replicas that DIR knows, running or not, as NAME-N, one a line.
known_replicas() {
  local name file
  for name in "${SERVICES[@]}"; do
    for file in "$1/config/$name"-*.yaml; do
      [[ ! -e $file ]] || basename "$file" .yaml
    done
  done
}

# make_signing_keys DIR: with these, what services say into the logs is signed: DIR/signing/NAME.key, and for who reads it
# DIR/signing/keys/NAME.pem. The command line says again what became a dead letter, as `retry`.
make_signing_keys() {
  local name folder=$1/signing
  [[ ! -d $folder ]] || return 0
  (umask 077 && mkdir -p "$folder.new/keys")
  for name in "${PIPELINE[@]}" retry; do
    openssl genpkey -algorithm ed25519 -out "$folder.new/$name.key"
    openssl pkey -in "$folder.new/$name.key" -pubout -out "$folder.new/keys/$name.pem"
  done
  mv "$folder.new" "$folder"
}

# proof_key DIR: the file by which the binder knows its pods again, made where there is none.
proof_key() {
  local file=$1/config/proof.key
  if [[ ! -s $file ]]; then
    (umask 077 && mkdir -p "$1/config" && head -c 32 /dev/urandom >"$file.new")
    mv "$file.new" "$file"
  fi
  printf '%s\n' "$file"
}

# signing_section DIR NAME: of a configuration; empty where the stack has no such keys.
signing_section() {
  [[ ! -d $1/signing ]] || printf 'signing: {key: "%s", keys: "%s"}\n' "$1/signing/$2.key" "$1/signing/keys"
}

# service_dsn DIR NAME: the database of the stack DIR, by the role of a service or of the command line (cli).
service_dsn() {
  local dsn
  dsn=$(<"$1/postgres/dsn")
  printf '%s\n' "${dsn/fluxqueue@/fluxqueue_$2@}"
}
