# shellcheck shell=bash
# A matcher without Kafka and PostgreSQL, for tests of private graphs, which need neither. Sourced after log.sh and proc.sh.
#
#   start_matcher PROGRAMS DIR     the program; its folder, of stack_dir. The address is then in DIR/address

start_matcher() {
  local program dir=$2
  program=$(realpath "$1")/fluxqueue-matcher
  [[ -x $program ]] || die "$program is not built"
  mkdir -p "$dir/logs"
  cat >"$dir/matcher.yaml" <<END
instance: matcher-1
http: {port: 0}
postgres: {dsn: "host=127.0.0.1 port=1 connect_timeout=2"}
kafka: {bootstrap: "127.0.0.1:1"}
matcher:
  grpc: {port: 0}
  private_graphs: {limit: 8, idle: ${MATCHER_IDLE:-10m}}
END
  proc_start "$dir" matcher "$program" --config "$dir/matcher.yaml"
  proc_wait_ready "$dir" matcher 20 "the matcher to serve gRPC" matcher_serves "$dir"
}

matcher_serves() {
  sed -n 's/.*serving gRPC address=\([^ ]*\).*/\1/p' "$1/logs/matcher.log" >"$1/address"
  [[ -s $1/address ]]
}
