#include <array>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/testing/shell.h"
#include "tests/chaos/fault.h"
#include "tests/soak/commands.h"
#include "tests/soak/hands.h"

namespace fluxqueue::chaos {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Room for one request of our services at a time, and 429 to the others.
constexpr const char* kTooManyRequests = R"(apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: chaos}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 0
    lendablePercent: 0
    borrowingLimitPercent: 0
    limitResponse: {type: Reject}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: chaos}
spec:
  matchingPrecedence: 2
  priorityLevelConfiguration: {name: chaos}
  rules:
    - subjects: [{kind: Group, group: {name: "system:serviceaccounts:fluxqueue-system"}}]
      resourceRules:
        - {verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}
)";

// 500 to all that our services write: an admission webhook that is not there.
constexpr const char* kInternalError = R"(apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: chaos}
webhooks:
  - name: chaos.fluxqueue.io
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    timeoutSeconds: 1
    clientConfig: {url: "https://127.0.0.1:1/"}
    rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
    matchConditions:
      - name: ours
        expression: request.userInfo.username.startsWith('system:serviceaccount:fluxqueue-system:')
)";

Deed Applied(const std::string& yaml) {
  return [=](Site& site) { return site.system().Kubectl({"apply", "-f", "-"}, yaml).status(); };
}

Deed Deleted(const std::string& yaml) {
  return [=](Site& site) { return site.system().Kubectl({"delete", "-f", "-"}, yaml).status(); };
}

Deed Slow(milliseconds by) {
  return [=](Site& site) {
    site.api_front().Delay(by);
    return absl::OkStatus();
  };
}

absl::Status FallSilent(Site& site) {
  site.api_front().FallSilent();
  return absl::OkStatus();
}

absl::Status Speak(Site& site) {
  site.api_front().Speak();
  return absl::OkStatus();
}

absl::Status CutWatches(Site& site) {
  site.api_front().Cut();
  return absl::OkStatus();
}

// Etcd's own API, in JSON.
absl::StatusOr<nlohmann::json> AskEtcd(Site& site,
                                       const std::string& call,
                                       const std::string& body) {
  int api_port = 0;
  int port = 0;
  std::ifstream(site.system().folder() + "/cluster/ports") >> api_port >> port;
  ASSIGN_OR_RETURN(const std::string answer,
                   testing::Run(fmt::format("curl -sSfm 10 http://127.0.0.1:{}/v3/kv/{} -d {} 2>&1",
                                            port,
                                            call,
                                            testing::ShellQuote(body))));
  const auto json = nlohmann::json::parse(answer, nullptr, false);
  if (!json.is_object()) return Unavailable("etcd answers {}", answer);
  return json;
}

// Nothing of what was is left to be watched.
absl::Status Compact(Site& site) {
  ASSIGN_OR_RETURN(const nlohmann::json range, AskEtcd(site, "range", R"({"key": "AA=="})"));
  const nlohmann::json body = {{"revision", range.at("header").at("revision")}, {"physical", true}};
  return AskEtcd(site, "compaction", body.dump()).status();
}

// One that pods run on.
absl::Status DeleteNode(Site& site) {
  ASSIGN_OR_RETURN(std::string node,
                   site.system().Kubectl({"get",
                                          "pods",
                                          "-n",
                                          std::string(soak::kNamespace),
                                          "--field-selector=status.phase=Running",
                                          "-o",
                                          "jsonpath={.items[0].spec.nodeName}"}));
  if (node.empty()) return Unavailable("no pod runs");
  return site.system().Kubectl({"delete", "node", node, "--wait=false"}).status();
}

absl::Status MakeNodes(Site& site) {
  return soak::Hands(&site.system()).MakeNodes();
}

// A kubelet says again what an API server has not taken. kwok does so after some errors only, and
// a pod that has run would run on until its watch ends: it is started again, and lists all pods.
Deed KwokAgain() {
  return Each({Ended("cluster/kwok"), Started("cluster")});
}

}  // namespace

std::vector<Fault> KubernetesFaults() {
  return {
      {.name = "the API server is killed",
       .targets = {"api"},
       .strike = Killed("cluster/kube-apiserver"),
       .heal = KwokAgain(),
       .loses_pods = true},
      {.name = "the API server has forgotten what was",
       .targets = {"api"},
       .strike = Each({Killed("cluster/kube-apiserver"), Compact}),
       .heal = KwokAgain(),
       .loses_pods = true},
      {.name = "the API server stands still",
       .targets = {"api"},
       .strike = Stopped("cluster/kube-apiserver"),
       .heal = Each({Continued("cluster/kube-apiserver"), KwokAgain()}),
       .held = true,
       .loses_pods = true},
      {.name = "the API server says nothing to us",
       .targets = {"api"},
       .strike = FallSilent,
       .heal = Speak,
       .held = true},
      {.name = "the API server is slow by 200 ms",
       .targets = {"api"},
       .strike = Slow(milliseconds(200)),
       .heal = Slow(milliseconds(0)),
       .held = true},
      {.name = "watches are cut", .targets = {"api"}, .strike = CutWatches, .heal = Nothing},
      {.name = "the API server answers 429",
       .targets = {"api"},
       .strike = Applied(kTooManyRequests),
       .heal = Deleted(kTooManyRequests),
       .held = true},
      {.name = "the API server answers 500",
       .targets = {"api"},
       .strike = Applied(kInternalError),
       .heal = Deleted(kInternalError),
       .held = true},
      {.name = "etcd is killed",
       .targets = {"api"},
       .strike = Killed("cluster/etcd"),
       .heal = KwokAgain(),
       .loses_pods = true},
      {.name = "a node is deleted",
       .targets = {"nodes", "api"},
       .strike = DeleteNode,
       .heal = MakeNodes,
       .held = true,
       .loses_pods = true},
  };
}

}  // namespace fluxqueue::chaos
