#!/usr/bin/env bash
# The spans of one job come from all five services, those of the calls about it too, and form one tree in the job's own
# trace; a call that one service makes for another lies below it. What they are sent to listens as a collector would.
#
#   traces_test.sh BIN
#
# Needs tools/deps. Takes about half a minute.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$here/../../tools
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$tools/lib/proc.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$tools/lib/cache.sh"

export FLUXQUEUE_BIN=${1:?usage: traces_test.sh BIN}
dir=$(realpath "$(mktemp -d)")
clean_up() {
  "$tools/stack/stop" "$dir" || true
  proc_stop "$dir" collector || true
  rm -rf "$dir"
}
on_exit clean_up

kube() { "$(kubernetes_home "$tools")/kubectl" --kubeconfig "$dir/kubeconfig" "$@"; }

# Appends each request's body to DIR/spans, one a line.
start_collector() {
  local port
  port=$(port_free)
  : >"$dir/spans"
  proc_start "$dir" collector python3 -c '
import http.server, sys
class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(sys.argv[2], "ab") as spans:
            spans.write(body + b"\n")
        self.send_response(200)
        self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Collector).serve_forever()' "$port" "$dir/spans"
  mkdir -p "$dir/sections"
  printf 'tracing: {endpoint: "http://127.0.0.1:%s"}\n' "$port" >"$dir/sections/common.yaml"
}

# "SERVICE NAME SPAN PARENT", one a line, of the spans of $trace.
spans() {
  jq -r --arg trace "$trace" '.resourceSpans[]
    | (.resource.attributes[] | select(.key == "service.name") | .value.stringValue) as $service
    | .scopeSpans[].spans[] | select(.traceId == $trace) | [$service, .name, .spanId, .parentSpanId // "none"] | @tsv' \
    "$dir/spans" | sort -u
}
all_there() { [[ $(spans | cut -f 1,2 | tr '\t' ' ') == "$wanted" ]]; }
await_spans() {
  wait_until 60 "the job's spans" all_there || die "wanted"$'\n'"$wanted"$'\n'"and found"$'\n'"$(spans)"
}

start_collector
"$tools/stack/start" "$dir" --nodes 1 --test --parent $$
kube apply -f "$tools/../k8s/examples/00-namespace.yaml" >/dev/null
# It runs until it is cancelled. The request that makes it is traced, and the API server hands that on to the webhook.
request=0af7651916cd43dd8448eb211c80319c client=b7ad6b7169203331 pki=$dir/cluster/pki
sed 's/run-seconds: "3"/run-seconds: "600"/' "$tools/../k8s/examples/10-job.yaml" |
  curl -sSfm 20 -o /dev/null --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" --data-binary @- \
    -H 'Content-Type: application/yaml' -H "traceparent: 00-$request-$client-01" \
    "$(kube config view -o 'jsonpath={.clusters[0].cluster.server}')/apis/batch/v1/namespaces/demo/jobs"
job=$(kube -n demo get job hello -o 'jsonpath={.metadata.uid}') && trace=${job//-/}
wanted="admission submit
binder bind
cleanup start
matcher match
queue wait"
await_spans
for command in explain cancel; do
  "$FLUXQUEUE_BIN/fluxqueue" --config "$dir/fluxqueue.yaml" "$command" "$job" >/dev/null
done
wanted="admission submit
binder bind
cleanup start
matcher match
queue job
queue rpc CancelJob
queue rpc Explain
queue wait"
await_spans

root=$(spans | awk -F '\t' '$2 == "job" { print $3 " " $4 }')
[[ ${root#* } == none ]] || die "the span of the job has a parent: ${root#* }"
strays=$(spans | awk -F '\t' -v root="${root% *}" '$2 != "job" && $4 != root')
[[ -z $strays ]] || die "spans that are not below the job's:"$'\n'"$strays"
jobs=$(spans | wc -l)

# The webhook's span lies in the trace of the request, and the job's own trace names it.
link=$(jq -r '.resourceSpans[].scopeSpans[].spans[] | select(.name == "submit") | .links[] | "\(.traceId) \(.spanId)"' \
  "$dir/spans" | sort -u)
trace=$request
reviewed() { [[ $(spans) == "admission"$'\t'"review"$'\t'"${link#* }"$'\t'"$client" ]]; }
wait_until 20 "the webhook's span" reviewed || die "wanted ${link#* } below $client, and found $(spans)"
[[ ${link% *} == "$request" ]] || die "the job's trace names $link, and its request was $request"
# The graph service hands on the trace of a call for which it asks the queue.
trace=4bf92f3577b34da6a3ce929d0e0e4736
cat >"$dir/slot.json" <<END
{"version": 1, "resources": [{"type": "slot", "count": 1, "label": "s", "with": [{"type": "cpu", "count": 1000}]}],
 "tasks": [{"command": ["x"], "slot": "s", "count": {"per_slot": 1}}], "attributes": {"system": {"duration": 600}}}
END
read -r _ port <"$dir/config/graph-1.ports"
"$tools/grpc" fluxqueue.matcher.v1.Matcher/Match "jobspec=@$dir/slot.json" --address "127.0.0.1:$port" \
  -H "traceparent=00-$trace-$client-01" >/dev/null
wanted="graph rpc Match
queue rpc SubmitClaim"
await_spans
match=$(spans | awk -F '\t' -v parent=$client '$2 == "rpc Match" && $4 == parent { print $3 }')
[[ $(spans | awk -F '\t' '$2 == "rpc SubmitClaim" { print $4 }') == "${match:?is not below the client}" ]] ||
  die "the claim is not below the match:"$'\n'"$(spans)"

say "$jobs spans of five services in the trace of the job, and one in that of the request that made it"
