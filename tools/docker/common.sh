# shellcheck shell=bash
# What tools/docker/start, enter and stop share.

# cgroup_of DIR: the control group of the engine's containers.
cgroup_of() { printf '/fluxqueue-docker-%s' "$(printf '%s' "$1" | sha256sum | head -c 12)"; }
