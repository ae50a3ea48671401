# shellcheck shell=bash
# What the tools of the real node share.

# node_cgroup DIR: the control group of the pods.
node_cgroup() { printf '/fluxqueue-node-%s' "$(printf '%s' "$1" | sha256sum | head -c 12)"; }

# node_ctr DIR ARGUMENT…
node_ctr() {
  local socket=$1/containerd.sock
  shift
  ctr --address "$socket" --namespace k8s.io "$@"
}
