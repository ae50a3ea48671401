# shellcheck shell=bash
# Where downloaded and built parts are kept, for those that make them (tools/deps) and those that start them. Sourced
# after log.sh.
#
# Each part has a folder named after its pinned version and a digest of the files that pin it, so that two checkouts with
# different pins share one cache, and a new pin makes a new folder and touches no other.

fluxqueue_cache() {
  printf '%s' "${FLUXQUEUE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fluxqueue}"
}

# cache_key NAME VERSION FILE…: the folder of a part.
cache_key() {
  local name=$1 version=$2 digest
  shift 2
  digest=$(cat "$@" | sha256sum)
  printf '%s/%s-%s-%s' "$(fluxqueue_cache)" "$name" "$version" "${digest:0:8}"
}

# The folders of the parts. $1 is the folder tools/ of this checkout.
kafka_home() {
  cache_key kafka "$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$1/kafka/pom.xml")" "$1/kafka/pom.xml"
}

# go_home TOOLS NAME MODULE: the folder of what is built from tools/cluster/NAME, whose go.mod pins MODULE. Its go.sum names
# every module that goes into it.
go_home() {
  local mod=$1/cluster/$2/go.mod
  cache_key "$2" "$(awk -v module="$3" '$1 == "require" { sub(/^require /, "") } $1 == module { print $2; exit }' "$mod")" \
    "${mod%.mod}.sum"
}
# The control plane. FLUXQUEUE_KUBERNETES names another version of it than the pinned one: v1.37.2.
kubernetes_home() {
  if [[ -n ${FLUXQUEUE_KUBERNETES:-} ]]; then
    printf '%s/kubernetes-%s-unpinned' "$(fluxqueue_cache)" "$FLUXQUEUE_KUBERNETES"
  else
    go_home "$1" kubernetes k8s.io/kubernetes
  fi
}
# Of the pinned version's modules, and its own source.
filters_home() {
  local folder=$1/cluster/kubernetes version
  version=$(basename "$(go_home "$1" kubernetes k8s.io/kubernetes)" | cut -d- -f2)
  cache_key filters "$version" "$folder/go.sum" "$folder/filters/main.go"
}
kubectl_program() { printf '%s' "${FLUXQUEUE_KUBECTL:-$(kubernetes_home "$1")/kubectl}"; }
etcd_home() { go_home "$1" etcd go.etcd.io/etcd/server/v3; }
kwok_home() { go_home "$1" kwok sigs.k8s.io/kwok; }
kubelet_home() { go_home "$1" kubelet k8s.io/kubernetes; }
helm_home() { go_home "$1" helm helm.sh/helm/v3; }

# cache_lock NAME: until the end of the script, no other process makes the part.
cache_lock() {
  mkdir -p "$(fluxqueue_cache)"
  exec {CACHE_LOCK}>"$(fluxqueue_cache)/$1.lock"
  flock -n "$CACHE_LOCK" || {
    say "waiting for another process that makes $1"
    flock "$CACHE_LOCK"
  }
}
