# shellcheck shell=bash
# A graph service without PostgreSQL, for tests of private graphs, which do not need it. Sourced after log.sh and proc.sh.
#
#   start_graph PROGRAMS DIR     the program; its folder, of stack_dir. The address is then in DIR/address

start_graph() {
  local program dir=$2
  program=$(realpath "$1")/fluxqueue-graph
  [[ -x $program ]] || die "$program is not built"
  mkdir -p "$dir/logs"
  cat >"$dir/graph.yaml" <<END
instance: graph-1
http: {port: 0}
postgres: {dsn: "host=127.0.0.1 port=1 connect_timeout=2"}
graph:
  grpc: {port: 0}
  ancestors: true
  private_graphs: {limit: 8, idle: ${GRAPH_IDLE:-10m}}
END
  proc_start "$dir" graph "$program" --config "$dir/graph.yaml"
  proc_wait_ready "$dir" graph 20 "it to serve gRPC" graph_serves "$dir"
}

graph_serves() {
  sed -n 's/.*serving gRPC address=\([^ ]*\).*/\1/p' "$1/logs/graph.log" >"$1/address"
  [[ -s $1/address ]]
}
