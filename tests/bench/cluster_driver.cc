#include "tests/bench/cluster_driver.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/http/client.h"
#include "libs/kubernetes/config.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/resource.h"
#include "libs/kubernetes/views.h"
#include "tests/bench/await.h"
#include "tests/bench/probe.h"

namespace fluxqueue::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kCreators = 16;
constexpr std::chrono::seconds kSettle{2};
// What still rises then counts as it is.
constexpr std::chrono::seconds kSettleAtMost{60};
constexpr Millis kLook{100};
constexpr kubernetes::Resource kServiceAccounts{"", "v1", "serviceaccounts"};
constexpr kubernetes::Resource kDeployments{"apps", "v1", "deployments"};
constexpr std::string_view kJobNameLabel = "batch.kubernetes.io/job-name";

// Not stored, or not about workloads: nodes and leases are written by the clock.
constexpr std::array kNotCounted = {"leases",
                                    "nodes",
                                    "tokenreviews",
                                    "subjectaccessreviews",
                                    "selfsubjectaccessreviews",
                                    "serviceaccounts"};

std::string LabelOf(const std::string& labels, std::string_view key) {
  const std::string begin = fmt::format("{}=\"", key);
  size_t at = labels.find("{" + begin);
  if (at == std::string::npos) at = labels.find("," + begin);
  if (at == std::string::npos) return {};
  at += begin.size() + 1;
  return labels.substr(at, labels.find('"', at) - at);
}

bool IsWrite(const std::string& verb) {
  return verb == "POST" || verb == "PUT" || verb == "PATCH" || verb == "DELETE" ||
         verb == "APPLY" || verb == "DELETECOLLECTION";
}

// "gang-17" → "gang".
std::string PrefixOf(std::string_view name) {
  return std::string(name.substr(0, name.rfind('-')));
}

Writes MoreThan(const Writes& before, const Writes& after) {
  Writes more;
  for (const auto& [what, sum] : after) {
    const auto found = before.find(what);
    const double made = sum - (found == before.end() ? 0 : found->second);
    if (made > 0) more[what] = made;
  }
  return more;
}

double Milliseconds(SteadyClock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterDriver>> ClusterDriver::Connect(const std::string& kubeconfig,
                                                                      std::string space,
                                                                      int timeout_s) {
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig config, kubernetes::ReadKubeconfig(kubeconfig));
  // A machine that is busy with the benchmark answers late.
  config.request_timeout = std::chrono::seconds(60);
  return std::unique_ptr<ClusterDriver>(
      new ClusterDriver(std::move(config), std::move(space), timeout_s));
}

ClusterDriver::ClusterDriver(kubernetes::ClusterConfig config, std::string space, int timeout_s)
    : config_(config), space_(std::move(space)), timeout_(timeout_s), client_(std::move(config)) {}

ClusterDriver::~ClusterDriver() = default;

absl::Status ClusterDriver::Open(bool managed) {
  const std::string labels =
      managed ? fmt::format(R"(,"labels":{{"{}":"true"}})", kubernetes::kManagedLabel) : "";
  RETURN_IF_ERROR(
      client_
          .Create(kubernetes::kNamespaces,
                  {},
                  fmt::format(
                      R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"{}}}}})",
                      space_,
                      labels))
          .status());
  // Without it no pod can be made there.
  ASSIGN_OR_RETURN(const bool open, Await(timeout_, kLook, [this] {
                     return client_.Get(kServiceAccounts, space_, "default").ok();
                   }));
  if (!open) {
    return Unavailable("namespace {} has no service account yet: does the controller manager run?",
                       space_);
  }
  kubernetes::WatcherOptions options;
  options.resource = kubernetes::kJobs;
  options.selector.space = space_;
  jobs_ = std::make_unique<kubernetes::Watcher>(
      client_, options, [this](const kubernetes::WatchEvent& event) { OnJob(event); });
  return absl::OkStatus();
}

void ClusterDriver::OnJob(const kubernetes::WatchEvent& event) {
  if (event.object.empty()) return;
  const absl::StatusOr<kubernetes::Job> job = kubernetes::ParseJob(event.object);
  if (!job.ok() || !(job->complete || job->has_failed)) return;
  const std::lock_guard lock(mutex_);
  if (job->has_failed) failed_ = fmt::format("{}: {}", job->meta.name, job->message);
  if (ended_.emplace(job->meta.name, SteadyClock::now()).second) {
    ++ended_by_prefix_[PrefixOf(job->meta.name)];
    changed_.notify_all();
  }
}

void ClusterDriver::OnPod(const kubernetes::WatchEvent& event) {
  if (event.object.empty()) return;
  const TimePoint now = SteadyClock::now();
  const absl::StatusOr<kubernetes::Pod> pod = kubernetes::ParsePod(event.object);
  if (!pod.ok() || pod->spec.node_name.empty()) return;
  const auto name = pod->meta.labels.find(kJobNameLabel);
  const std::lock_guard lock(mutex_);
  if (name == pod->meta.labels.end()) {
    serving_.insert(pod->meta.name);
    changed_.notify_all();
    return;
  }
  if (bound_.emplace(name->second, now).second) changed_.notify_all();
}

std::string ClusterDriver::JobObject(const std::string& name, int pods) const {
  return fmt::format(
      R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"{}","namespace":"{}"}},"spec":{{)"
      R"("parallelism":{},"completions":{},"template":{{"spec":{{"restartPolicy":"Never","containers":[)"
      R"({{"name":"main","image":"work","resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}}}}}}]}}}}}}}})",
      name,
      space_,
      pods,
      pods);
}

absl::Status ClusterDriver::CreateAll(const std::string& prefix, int count, int pods) {
  std::atomic<int> next = 0;
  std::mutex mutex;
  absl::Status first;
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) {
      const absl::Status made =
          client_
              .Create(kubernetes::kJobs, space_, JobObject(fmt::format("{}-{}", prefix, i), pods))
              .status();
      if (made.ok()) continue;
      next = count;
      const std::lock_guard lock(mutex);
      first.Update(made);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < std::min(count, kCreators); ++i) threads.emplace_back(work);
  }
  return first;
}

absl::Status ClusterDriver::AwaitEnds(const std::string& prefix, int count) {
  std::unique_lock lock(mutex_);
  const bool all = changed_.wait_for(
      lock, timeout_, [&] { return ended_by_prefix_[prefix] >= count || !failed_.empty(); });
  if (!failed_.empty()) return Internal("a Job has failed: {}", failed_);
  if (all) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                    "only {} of {} Jobs {}-… have ended after {} s",
                    ended_by_prefix_[prefix],
                    count,
                    prefix,
                    timeout_.count());
}

absl::StatusOr<Writes> ClusterDriver::ReadWrites() {
  http::Client http({.base_url = config_.server, .tls = config_.tls, .bearer_token = [this] {
                       return config_.token;
                     }});
  ASSIGN_OR_RETURN(const http::Response page,
                   http.Do({.target = "/metrics", .accept = "*/*", .timeout = Millis(60'000)}));
  if (page.status != 200) return Unavailable("the API server's /metrics: HTTP {}", page.status);
  Writes writes;
  for (const MetricLine& line : ParseMetrics(page.body)) {
    if (line.name != "apiserver_request_total") continue;
    const std::string verb = LabelOf(line.labels, "verb");
    const std::string resource = LabelOf(line.labels, "resource");
    if (!IsWrite(verb) || resource.empty() ||
        std::find(kNotCounted.begin(), kNotCounted.end(), resource) != kNotCounted.end()) {
      continue;
    }
    const std::string part = LabelOf(line.labels, "subresource");
    writes[fmt::format("{}{}{} {}", resource, part.empty() ? "" : "/", part, verb)] += line.value;
  }
  return writes;
}

absl::StatusOr<Writes> ClusterDriver::SettledWrites() {
  Writes writes;
  const auto rest = Await(kSettleAtMost, kSettle, [&]() -> absl::StatusOr<bool> {
    const Writes before = std::move(writes);
    ASSIGN_OR_RETURN(writes, ReadWrites());
    return writes == before;
  });
  RETURN_IF_ERROR(rest.status());
  return writes;
}

absl::StatusOr<BatchResult> ClusterDriver::Batch(const std::string& prefix, int count, int pods) {
  ASSIGN_OR_RETURN(const Writes before, SettledWrites());
  const TimePoint begin = SteadyClock::now();
  RETURN_IF_ERROR(CreateAll(prefix, count, pods));
  RETURN_IF_ERROR(AwaitEnds(prefix, count));
  TimePoint last = begin;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, at] : ended_) {
      if (PrefixOf(name) == prefix) last = std::max(last, at);
    }
  }
  BatchResult result;
  result.seconds = std::chrono::duration<double>(last - begin).count();
  ASSIGN_OR_RETURN(const Writes after, SettledWrites());
  result.writes = MoreThan(before, after);
  return result;
}

absl::StatusOr<std::unique_ptr<kubernetes::Watcher>> ClusterDriver::WatchPods() {
  kubernetes::WatcherOptions options;
  options.resource = kubernetes::kPods;
  options.selector.space = space_;
  auto pods = std::make_unique<kubernetes::Watcher>(
      client_, options, [this](const kubernetes::WatchEvent& event) { OnPod(event); });
  ASSIGN_OR_RETURN(const bool listed, Await(timeout_, kLook, [&pods] { return pods->synced(); }));
  if (!listed) return Unavailable("the pods of {} are not listed", space_);
  return pods;
}

absl::StatusOr<ScaleResult> ClusterDriver::Scale(const std::string& name, int replicas) {
  ASSIGN_OR_RETURN(const auto pods, WatchPods());
  const std::string labels = fmt::format(R"({{"app":"{}"}})", name);
  RETURN_IF_ERROR(
      client_
          .Create(
              kDeployments,
              space_,
              fmt::format(
                  R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{}"}},"spec":{{)"
                  R"("replicas":0,"selector":{{"matchLabels":{}}},"template":{{"metadata":{{"labels":{}}},)"
                  R"("spec":{{"containers":[{{"name":"main","image":"work",)"
                  R"("resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}}}}}}]}}}}}}}})",
                  name,
                  labels,
                  labels))
          .status());
  ASSIGN_OR_RETURN(const Writes before, SettledWrites());
  const TimePoint begin = SteadyClock::now();
  RETURN_IF_ERROR(client_
                      .Patch(kDeployments,
                             space_,
                             name,
                             kubernetes::PatchType::kMerge,
                             fmt::format(R"({{"spec":{{"replicas":{}}}}})", replicas))
                      .status());
  ScaleResult result;
  {
    std::unique_lock lock(mutex_);
    const auto all = static_cast<size_t>(replicas);
    if (!changed_.wait_for(lock, timeout_, [&] { return serving_.size() >= all; })) {
      return Unavailable("only {} of {} replicas were bound after {} s",
                         serving_.size(),
                         replicas,
                         timeout_.count());
    }
    result.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  }
  ASSIGN_OR_RETURN(const Writes after, SettledWrites());
  result.writes = MoreThan(before, after);
  RETURN_IF_ERROR(client_.Delete(kDeployments, space_, name));
  return result;
}

absl::Status ClusterDriver::AwaitQuiet(const std::function<absl::StatusOr<double>()>& written) {
  ASSIGN_OR_RETURN(double before, written());
  TimePoint since = SteadyClock::now();
  ASSIGN_OR_RETURN(const bool quiet, Await(timeout_, kLook, [&]() -> absl::StatusOr<bool> {
                     ASSIGN_OR_RETURN(const double now, written());
                     if (now != before) since = SteadyClock::now();
                     before = now;
                     return SteadyClock::now() >= since + kSettle;
                   }));
  return quiet ? absl::OkStatus() : Unavailable("the system does not come to rest");
}

absl::StatusOr<std::vector<double>> ClusterDriver::Singles(
    const std::string& prefix, int count, const std::function<absl::StatusOr<double>()>& written) {
  ASSIGN_OR_RETURN(const auto pods, WatchPods());
  std::vector<double> result;
  for (int i = 0; i < count; ++i) {
    const std::string name = fmt::format("{}-{}", prefix, i);
    RETURN_IF_ERROR(AwaitQuiet(written));
    const TimePoint called = SteadyClock::now();
    RETURN_IF_ERROR(client_.Create(kubernetes::kJobs, space_, JobObject(name, 1)).status());
    RETURN_IF_ERROR(AwaitEnds(prefix, i + 1));
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout_, [&] { return bound_.contains(name); })) {
      return Unavailable("the pod of {} was not seen", name);
    }
    result.push_back(Milliseconds(bound_[name] - called));
  }
  return result;
}

}  // namespace fluxqueue::bench
