#!/usr/bin/env bash
# The images, and the section "With docker compose" of README.md as it stands there, with a real Docker engine and without
# a registry: what the images hold, the examples to their end, Prometheus, a service that is built anew while jobs run,
# and that nothing is left.
#
#   tests/deploy/compose_test.sh BIN      BIN: the folder of the programs
#
# Needs root, tools/deps kafka cluster deploy. Takes about three minutes, two more when the Debian of compose/offline is not
# in the cache yet.
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$tools/lib/proc.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$tools/lib/cache.sh"
# shellcheck source=../../tools/lib/docker.sh
. "$tools/lib/docker.sh"
# shellcheck source=../../tools/docker/common.sh
. "$tools/docker/common.sh"
# shellcheck source=../tools/checks.sh
. "$tools/../tests/tools/checks.sh"

readonly MOST_BYTES=120000000 MOST_ROUNDS=300

bin=$(realpath "${1:?usage: tests/deploy/compose_test.sh BIN}")
repository=$(cd "$tools/.." && pwd)
root=$(realpath "$(mktemp -d)")
clean_up() {
  "$tools/docker/stop" "$root/docker" || true
  rm -rf "$root"
}
on_exit clean_up

# What a user has: docker compose, kubectl, a home. What is special with Debian's docker-compose, compose/README.md says.
mkdir -p "$root/bin" "$root/home/.kube"
cat >"$root/bin/docker" <<'END'
#!/bin/sh
[ "$1" != compose ] || { shift; exec docker-compose "$@"; }
exec /usr/bin/docker "$@"
END
chmod +x "$root/bin/docker"
ln -s "$(kubernetes_home "$tools")/kubectl" "$root/bin/kubectl"
export PATH=$root/bin:$PATH HOME=$root/home FLUXQUEUE_CACHE=${FLUXQUEUE_CACHE:-$(fluxqueue_cache)} DOCKER_BUILDKIT=1
export COMPOSE_FILE=compose.yaml:compose.offline.yaml FLUXQUEUE_CONTEXT=$root/context KUBECONFIG=$root/home/.kube/fluxqueue

# Where the engine's published ports are.
inside() { (cd "$repository/compose" && "$tools/docker/enter" "$root/docker" "$@"); }
kube() { inside kubectl --request-timeout 20s "$@"; }

# readme N: runs the Nth block of commands of the section. It has no terminal, which docker compose run would want.
readme() {
  local commands output
  commands=$(awk -v wanted="$1" '/^## / { section = /^## With docker compose$/ }
    section && /^```/ { block += inside = !inside; next } section && inside && block == wanted' "$repository/README.md" |
    sed 's/^cd compose$//; s/ compose run --rm / compose run --rm -T /')
  [[ -n $commands ]] || fail "block $1 of the section" "there is none in README.md"
  output=$(inside bash -euo pipefail -c "$commands" 2>&1) || fail "block $1 of README.md" "$output"
  say "ok    $(tr '\n' ';' <<<"$commands")"
}

# The programs in an image: no shell, no compiler, nothing but ours.
programs_of() {
  local container
  container=$(docker create "$1")
  docker export "$container" | tar -t | sed -n 's:^usr/s\?bin/\(.\)\|^s\?bin/\(.\):\1\2:p' | sort | xargs
  docker rm "$container" >/dev/null
}

image_is_bare() {
  local name=$1 service=${1#localhost/fluxqueue/} tag=${1#*:} wanted help
  service=${service%:*}
  wanted=fluxqueue-$service
  [[ $service != matcher ]] || wanted='fluxqueue-fluxion-host fluxqueue-matcher'
  [[ $service != cli ]] || wanted='fluxqueue kubectl-fluxqueue'
  expect "$service: all of its programs" "$wanted" "$(programs_of "$name")"
  expect "$service: small" 1 "$(($(docker image inspect --format '{{.Size}}' "$name") < MOST_BYTES))"
  expect "$service: its user" 65532:65532 "$(docker image inspect --format '{{.Config.User}}' "$name")"
  expect "$service: its labels" "$(git -C "$repository" rev-parse HEAD) ${tag%%-*}" \
    "$(docker image inspect "$name" | jq -r '.[0].Config.Labels | with_entries(.key |= ltrimstr("org.opencontainers.image."))
      | select(.title and .description and .created) | "\(.revision) \(.version)"')"
  help=$(docker run --rm --read-only --cap-drop ALL "$name" --help)
  expect "$service: starts, with nothing that it may write to" yes "$(grep -q -- --config <<<"$help" && echo yes)"
}

# A Debian with a library of Fluxion's interface stands for the image that cannot be had here.
matcher_with_fluxion() {
  local name library
  mkdir "$root/flux-sched"
  cp "$bin/libfluxqueue_reapi.so" "$root/flux-sched/"
  printf 'FROM localhost/fluxqueue/debian\nCOPY libfluxqueue_reapi.so /usr/lib/libreapi_cli.so\n' |
    docker_build --quiet --tag fluxrm/flux-sched:stand-in --file - "$root/flux-sched" >/dev/null
  name=$(FLUX_SCHED_TAG=stand-in "$tools/images" --programs "$bin" matcher-fluxion)
  for library in /usr/lib/libreapi_cli.so /nowhere.so; do
    printf 'postgres: {dsn: "host=127.0.0.1"}\nkafka: {bootstrap: "127.0.0.1:1"}\nmatcher: {fluxion: {library: %s}}\n' $library \
      >"$root/matcher.yaml"
    docker run --detach --name matcher-fluxion --volume "$root/matcher.yaml:/etc/fluxqueue/config.yaml:ro" "$name" >/dev/null
    eventually 30 "matcher-fluxion with $library" "$([[ $library == /nowhere.so ]] && echo failed || echo waits)" \
      library_opened
    docker rm --force matcher-fluxion >/dev/null
  done
}

library_opened() {
  docker logs matcher-fluxion 2>&1 |
    sed -n 's/.*delivery waits.*/waits/p; s/.*ended with a failure reason="matcher.fluxion.library: .*/failed/p' | head -n1
}

jobs_by_state() {
  kube get fluxjobs --namespace "$1" --output json |
    jq -r '[.items[].status.state] | group_by(.) | map("\(length) \(.[0])") | join(", ")'
}

some_are_under_way() { [[ ! $(jobs_by_state many) =~ Pending|Allocated|Running ]] || echo yes; }

verified() {
  local output
  output=$(inside docker compose run --rm -T cli verify 2>&1) || fail "$1: fluxqueue verify" "$output"
  expect "$1: the invariants hold" 8 "$(grep -c '^✓' <<<"$output")"
}

query() {
  inside curl -sfG http://127.0.0.1:9090/api/v1/query --data-urlencode "query=$1" |
    jq -r '.data.result[0].value[1] // "nothing"'
}

# five_jobs ROUND
five_jobs() {
  local i
  for i in 1 2 3 4 5; do
    cat <<END
---
apiVersion: batch/v1
kind: Job
metadata: {name: part-$1-$i, namespace: many}
spec:
  template:
    metadata: {annotations: {fluxqueue.io/run-seconds: "8"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "4"}}}]
END
  done
}

# jobs_come FLAG: as long as this file is there, so that some are under way however long something takes. Prints how many.
jobs_come() {
  local round
  for ((round = 0; round < MOST_ROUNDS; ++round)); do
    [[ -e $1 ]] || break
    five_jobs $round | kube apply -f - >/dev/null
    sleep 2
  done
  printf '%s\n' $((5 * round))
}

matcher_image() { docker inspect --format '{{.Image}}' "$(inside docker compose ps -q matcher)"; }

# A matcher with other bytes: without its symbols.
matcher_is_built_anew() {
  local before feeder made flag=$root/jobs-come
  before=$(matcher_image)
  strip "$FLUXQUEUE_CONTEXT/services/programs/bin/fluxqueue-matcher"
  step "docker compose build matcher" inside docker compose build matcher
  kube create namespace many >/dev/null
  kube label namespace many fluxqueue.io/managed=true >/dev/null
  : >"$flag"
  jobs_come "$flag" >"$root/jobs-made" &
  feeder=$!
  eventually 60 "jobs are under way" yes some_are_under_way
  readme 2
  [[ $(matcher_image) != "$before" ]] || fail "another matcher runs" "$before"
  expect "jobs were under way meanwhile" yes "$(some_are_under_way)"
  rm "$flag"
  wait "$feeder"
  made=$(<"$root/jobs-made")
  eventually 240 "every job ends" "$made Succeeded" jobs_by_state many
  verified "after the other matcher"
}

nothing_is_left() {
  readme 3
  expect "no container is left" '' "$(docker ps --all --quiet)"
  expect "no volume is left" '' "$(docker volume ls --quiet)"
  expect "no network is left" 'bridge host none' "$(docker network ls --format '{{.Name}}' | sort | xargs)"
  "$tools/docker/stop" "$root/docker"
  expect "no process is left" '' "$(proc_others "$root/docker")"
  expect "no mount is left" '' "$(grep "$root" /proc/mounts)"
  expect "no control group is left" '' "$(find /sys/fs/cgroup -path "*$(cgroup_of "$root/docker")*")"
}

steps_log_dir "$root/steps"
"$tools/docker/start" "$root/docker" --parent $$
DOCKER_HOST=$(<"$root/docker/host")
export DOCKER_HOST
for image in $("$tools/images" --programs "$bin"); do
  image_is_bare "$image"
done
"$repository/compose/offline/build" --programs "$bin" "$FLUXQUEUE_CONTEXT"
matcher_with_fluxion
step "docker compose build cli" inside docker compose build cli
readme 1
eventually 120 "the examples end" "1 Pending, 13 Succeeded" jobs_by_state demo
verified "after the examples"
eventually 60 "Prometheus reads from all services" 6 query 'sum(up{job="fluxqueue"})'
expect "Prometheus has their figures" 6 "$(query 'count(fluxqueue_build_info)')"
expect "Prometheus knows the rules" fluxqueue.yaml "$(inside curl -sf http://127.0.0.1:9090/api/v1/rules |
  jq -r '[.data.groups[].file | split("/") | last] | unique | join(" ")')"
matcher_is_built_anew
nothing_is_left
