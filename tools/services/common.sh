# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154
# What tools/services and tools/stack share. Sourced after log.sh, proc.sh and cache.sh; where kube is used, `dir`
# is the stack's folder.

# In the order of a job's way through them.
readonly SERVICES=(admission queue matcher binder cleanup)
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
