#include "tests/bench/webhook_cluster.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/check.h"

namespace fluxqueue::bench {
namespace {

using nlohmann::json;

constexpr int kNamespaces = 2000;
constexpr int kQueues = 50;
constexpr int kLimitRanges = 500;
constexpr int kBodies = 32;  // of each kind
constexpr std::chrono::seconds kWatch{10};

std::string SpaceName(int i) {
  return fmt::format("team-{:04}", i % kNamespaces);
}

std::string QueueName(int i) {
  return i % kQueues == 0 ? "default" : fmt::format("queue-{:02}", i % kQueues);
}

json Meta(const std::string& name) {
  return {{"name", name}, {"uid", "uid-" + name}, {"resourceVersion", "1"}};
}

json Namespaces() {
  json items = json::array();
  for (int i = 0; i < kNamespaces; ++i) {
    json meta = Meta(SpaceName(i));
    meta["labels"] = {{"kubernetes.io/metadata.name", SpaceName(i)},
                      {"fluxqueue.io/managed", "true"},
                      {"example.com/team", fmt::format("team-{}", i)}};
    items.push_back({{"metadata", meta}, {"spec", {{"finalizers", {"kubernetes"}}}}});
  }
  return items;
}

// Ten accounts, each with its share of the others below it.
json Queues() {
  json items = json::array();
  for (int i = 0; i < kQueues; ++i) {
    json spec = {{"defaultDuration", "1h"}, {"maxPriority", 1000}};
    if (i > 10) {
      spec["parent"] = QueueName(1 + i % 10);
      spec["limits"] = {{"perUser", {{"runningJobs", 100}, {"cpu", "128"}}},
                        {"perJob", {{"cpu", "512"}}}};
    }
    items.push_back({{"metadata", Meta(QueueName(i))}, {"spec", spec}});
  }
  return items;
}

json LimitRanges() {
  json items = json::array();
  for (int i = 0; i < kLimitRanges; ++i) {
    json meta = Meta("limits");
    meta["namespace"] = SpaceName(i * (kNamespaces / kLimitRanges));
    const json limit = {{"type", "Container"},
                        {"default", {{"cpu", "2"}, {"memory", "4Gi"}}},
                        {"defaultRequest", {{"cpu", "500m"}, {"memory", "1Gi"}}}};
    items.push_back({{"metadata", meta}, {"spec", {{"limits", json::array({limit})}}}});
  }
  return items;
}

json PriorityClasses() {
  json items = json::array();
  for (int i = 0; i < 20; ++i) {
    items.push_back({{"metadata", Meta(fmt::format("priority-{:02}", i))}, {"value", i * 50}});
  }
  return items;
}

json RuntimeClasses() {
  json items = json::array();
  for (const char* name : {"gvisor", "kata", "nvidia"}) {
    items.push_back({{"metadata", Meta(name)},
                     {"handler", name},
                     {"overhead", {{"podFixed", {{"cpu", "250m"}, {"memory", "160Mi"}}}}}});
  }
  return items;
}

std::string List(json items) {
  return json{
      {"kind", "List"}, {"metadata", {{"resourceVersion", "1"}}}, {"items", std::move(items)}}
      .dump();
}

json Container(int i) {
  json environment = json::array();
  for (int e = 0; e < 8; ++e) {
    environment.push_back({{"name", fmt::format("SETTING_{}", e)},
                           {"value", fmt::format("value of setting {} in {}", e, i)}});
  }
  return {{"name", "main"},
          {"image", "registry.example.com/team/solver:2026.11"},
          {"imagePullPolicy", "IfNotPresent"},
          {"command", {"/bin/sh", "-c"}},
          {"args", {"exec solver --input /data/in --output /data/out --threads 4"}},
          {"env", environment},
          {"resources",
           {{"requests", {{"cpu", "2"}, {"memory", "4Gi"}}},
            {"limits", {{"cpu", "4"}, {"memory", "8Gi"}, {"nvidia.com/gpu", "1"}}}}},
          {"terminationMessagePath", "/dev/termination-log"},
          {"terminationMessagePolicy", "File"},
          {"volumeMounts",
           {{{"name", "data"}, {"mountPath", "/data"}},
            {{"name", "kube-api-access-x7k2p"},
             {"readOnly", true},
             {"mountPath", "/var/run/secrets/kubernetes.io/serviceaccount"}}}}};
}

json PodSpec(int i, const char* restart_policy) {
  const json token = {
      {"name", "kube-api-access-x7k2p"},
      {"projected",
       {{"defaultMode", 420},
        {"sources",
         {{{"serviceAccountToken", {{"expirationSeconds", 3607}, {"path", "token"}}}},
          {{"configMap",
            {{"name", "kube-root-ca.crt"},
             {"items", {{{"key", "ca.crt"}, {"path", "ca.crt"}}}}}}}}}}}};
  json tolerations = json::array();
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    tolerations.push_back({{"key", key},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", 300}});
  }
  return {{"containers", {Container(i)}},
          {"volumes", {{{"name", "data"}, {"emptyDir", json::object()}}, token}},
          {"restartPolicy", restart_policy},
          {"terminationGracePeriodSeconds", 30},
          {"dnsPolicy", "ClusterFirst"},
          {"serviceAccountName", "default"},
          {"serviceAccount", "default"},
          {"securityContext", json::object()},
          {"schedulerName", "default-scheduler"},
          {"nodeSelector", {{"kubernetes.io/arch", "amd64"}}},
          {"tolerations", tolerations},
          {"priorityClassName", fmt::format("priority-{:02}", i % 20)},
          {"priority", (i % 20) * 50},
          {"enableServiceLinks", true},
          {"preemptionPolicy", "PreemptLowerPriority"}};
}

json ManagedFields(const char* manager) {
  json fields;
  for (const char* field : {"f:containers",
                            "f:dnsPolicy",
                            "f:restartPolicy",
                            "f:schedulerName",
                            "f:securityContext",
                            "f:terminationGracePeriodSeconds",
                            "f:volumes"}) {
    fields[field] = {{".", json::object()},
                     {"k:{\"name\":\"main\"}", {{"f:image", json::object()}}}};
  }
  return json::array({{{"manager", manager},
                       {"operation", "Update"},
                       {"apiVersion", "v1"},
                       {"time", "2026-11-25T10:00:00Z"},
                       {"fieldsType", "FieldsV1"},
                       {"fieldsV1", {{"f:spec", fields}}}}});
}

std::string Review(int i,
                   const std::string& user,
                   const char* group,
                   const char* kind,
                   const char* resource,
                   const json& object) {
  const json gvk = {{"group", group}, {"version", "v1"}, {"kind", kind}};
  const json gvr = {{"group", group}, {"version", "v1"}, {"resource", resource}};
  return json{{"kind", "AdmissionReview"},
              {"apiVersion", "admission.k8s.io/v1"},
              {"request",
               {{"uid", fmt::format("705ab4f5-6393-11e8-b7cc-42010a80{:04x}", i)},
                {"kind", gvk},
                {"resource", gvr},
                {"requestKind", gvk},
                {"requestResource", gvr},
                {"name", object["metadata"].value("name", "")},
                {"namespace", object["metadata"]["namespace"]},
                {"operation", "CREATE"},
                {"userInfo",
                 {{"username", user},
                  {"uid", "014fbff9a07c"},
                  {"groups", {"system:authenticated", "example.com:scientists"}}}},
                {"object", object},
                {"oldObject", nullptr},
                {"dryRun", false},
                {"options",
                 {{"kind", "CreateOptions"},
                  {"apiVersion", "meta.k8s.io/v1"},
                  {"fieldManager", "kubectl-create"}}}}}}
      .dump();
}

json Labels(int i) {
  return {{"app.kubernetes.io/name", "solver"},
          {"app.kubernetes.io/instance", fmt::format("run-{}", i)},
          {"fluxqueue.io/queue", QueueName(i)}};
}

std::string PodReview(int i) {
  const json object = {{"kind", "Pod"},
                       {"apiVersion", "v1"},
                       {"metadata",
                        {{"name", fmt::format("run-{}", i)},
                         {"namespace", SpaceName(i * 61)},
                         {"labels", Labels(i)},
                         {"annotations", {{"fluxqueue.io/duration", "2h"}}},
                         {"managedFields", ManagedFields("kubectl-create")}}},
                       {"spec", PodSpec(i, "Never")},
                       {"status", json::object()}};
  return Review(i, fmt::format("user-{}@example.com", i), "", "Pod", "pods", object);
}

std::string ReplicaReview(int i) {
  const std::string set = fmt::format("service-{}-6b474476c4", i);
  const json owner = {{"apiVersion", "apps/v1"},
                      {"kind", "ReplicaSet"},
                      {"name", set},
                      {"uid", "8f0c3a52-1b7e-4c55-9d41-0a1b2c3d4e5f"},
                      {"controller", true},
                      {"blockOwnerDeletion", true}};
  json labels = Labels(i);
  labels["pod-template-hash"] = "6b474476c4";
  const json object = {{"kind", "Pod"},
                       {"apiVersion", "v1"},
                       {"metadata",
                        {{"generateName", set + "-"},
                         {"namespace", SpaceName(i * 61)},
                         {"labels", labels},
                         {"ownerReferences", {owner}},
                         {"managedFields", ManagedFields("kube-controller-manager")}}},
                       {"spec", PodSpec(i, "Always")},
                       {"status", json::object()}};
  return Review(
      i, "system:serviceaccount:kube-system:replicaset-controller", "", "Pod", "pods", object);
}

// `padding`: bytes of an annotation, as tools leave there.
std::string JobReview(int i, size_t padding) {
  json template_labels = Labels(i);
  template_labels["batch.kubernetes.io/job-name"] = fmt::format("run-{}", i);
  json annotations = {{"fluxqueue.io/duration", "2h"}};
  json spec = PodSpec(i, "Never");
  if (padding > 0) {
    annotations["example.com/input"] = std::string(padding / 2, 'x');
    json& environment = spec["containers"][0]["env"];
    for (size_t e = 0; e < padding / 2 / 80; ++e) {
      environment.push_back({{"name", fmt::format("PARAMETER_{:04}", e)},
                             {"value", fmt::format("point {:04} of a grid of parameters", e)}});
    }
  }
  const json object = {
      {"kind", "Job"},
      {"apiVersion", "batch/v1"},
      {"metadata",
       {{"name", fmt::format("run-{}", i)},
        {"namespace", SpaceName(i * 61)},
        {"labels", Labels(i)},
        {"annotations", annotations},
        {"managedFields", ManagedFields("kubectl-create")}}},
      {"spec",
       {{"parallelism", 1 + i % 8},
        {"completions", 1 + i % 8},
        {"completionMode", "NonIndexed"},
        {"backoffLimit", 6},
        {"suspend", false},
        {"selector", {{"matchLabels", {{"batch.kubernetes.io/controller-uid", "u"}}}}},
        {"template", {{"metadata", {{"labels", template_labels}}}, {"spec", spec}}}}},
      {"status", json::object()}};
  return Review(i, fmt::format("user-{}@example.com", i), "batch", "Job", "jobs", object);
}

}  // namespace

class ListingApi::Impl {
 public:
  Impl() {
    lists_["namespaces"] = List(Namespaces());
    lists_["fluxqueues"] = List(Queues());
    lists_["limitranges"] = List(LimitRanges());
    lists_["priorityclasses"] = List(PriorityClasses());
    lists_["runtimeclasses"] = List(RuntimeClasses());
    lists_["fluxwindows"] = List(json::array());
    http::ServerOptions options;
    options.threads = 32;  // a watch holds one
    auto server = http::Server::Start(
        options, [this](const http::Request& request) { return Answer(request); });
    CHECK(server.ok(), "{}", server.status().ToString());
    server_ = *std::move(server);
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    server_->Stop();
  }

  int port() const { return server_->port(); }

 private:
  http::Response Answer(const http::Request& request) {
    const auto list = lists_.find(request.path.substr(request.path.rfind('/') + 1));
    if (list == lists_.end()) {
      return {.status = 404,
              .content_type = "application/json",
              .body = R"({"kind":"Status","code":404,"reason":"NotFound","message":"not found"})"};
    }
    if (request.query.find("watch=true") == std::string::npos) {
      return {.content_type = "application/json", .body = list->second};
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kWatch, [this] { return over_; });
    return {.content_type = "application/json"};
  }

  std::map<std::string, std::string> lists_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;  // guarded by mutex_
  std::unique_ptr<http::Server> server_;
};

ListingApi::ListingApi() : impl_(std::make_unique<Impl>()) {}
ListingApi::~ListingApi() = default;

int ListingApi::port() const {
  return impl_->port();
}

std::vector<ReviewKind> MakeReviews() {
  constexpr size_t kLargeJob = 100'000;
  std::vector<ReviewKind> kinds = {{"pod", "a bare pod", 40, {}},
                                   {"replica", "a Deployment's pod", 35, {}},
                                   {"job", "a Job", 24, {}},
                                   {"large", "a Job of 100 KB", 1, {}}};
  for (int i = 0; i < kBodies; ++i) {
    kinds[0].bodies.push_back(PodReview(i));
    kinds[1].bodies.push_back(ReplicaReview(i));
    kinds[2].bodies.push_back(JobReview(i, 0));
    kinds[3].bodies.push_back(JobReview(i, kLargeJob));
  }
  return kinds;
}

}  // namespace fluxqueue::bench
