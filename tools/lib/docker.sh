# shellcheck shell=bash
# How the tools talk to a Docker engine. Sourced after log.sh.

# docker ARGUMENT…: the client. One of 23 or later builds with its plugin buildx only; where that is missing, Debian's own
# client builds without.
if ! command docker buildx version >/dev/null 2>&1 && [[ -x /usr/bin/docker ]]; then
  docker() { /usr/bin/docker "$@"; }
fi

docker_build() { DOCKER_BUILDKIT=1 docker build --progress plain "$@"; }

# Ends the script where no engine answers.
docker_check() {
  local answer
  answer=$(docker version --format '{{.Server.Version}}' 2>&1) ||
    die "no Docker engine answers: $answer"$'\n'"Start one, or one of your own with: tools/docker/start DIR"
}
