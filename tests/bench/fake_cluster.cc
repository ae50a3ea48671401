#include "tests/bench/fake_cluster.h"

#include <chrono>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::bench {
namespace {

using nlohmann::json;

constexpr std::string_view kPodSuffix = "-0";

std::string Time(int64_t ms) {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(ms / 1000)));
}

// Not random: the same run has the same uids.
std::string Uid(int kind, uint64_t number) {
  return fmt::format("{:08x}-0000-4000-8000-{:012x}", kind, number);
}

Answer Failure(int status, std::string_view reason, std::string_view message) {
  const json body = {{"kind", "Status"},
                     {"apiVersion", "v1"},
                     {"status", "Failure"},
                     {"reason", reason},
                     {"message", message},
                     {"code", status}};
  return {status, body.dump()};
}

std::string Line(std::string_view type, std::string_view object) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object);
}

// A page of a list. An empty token: it is the last one.
Answer ListOf(uint64_t version, const std::string& token, std::string_view items) {
  const std::string next = token.empty() ? "" : fmt::format(R"(,"continue":"{}")", token);
  return {
      200,
      fmt::format(
          R"({{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"{}"{}}},"items":[{}]}})",
          version,
          next,
          items)};
}

// As the webhook leaves a pod.
std::string PodSpec(const JobShape& shape, std::string_view node) {
  return fmt::format(
      R"({{"containers":[{{"name":"main","image":"registry.example/work:1","command":["work"],)"
      R"("resources":{{"requests":{{"cpu":"{}m","memory":"64Mi"}}}},"terminationMessagePath":)"
      R"("/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],)"
      R"("restartPolicy":"Never","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",)"
      R"("securityContext":{{}},"schedulerName":"fluxqueue","priority":0{}{}{},)"
      R"("tolerations":[{{"key":"fluxqueue.io/dedicated","operator":"Exists"}}]}})",
      shape.cpu_millis,
      node.empty() ? "" : ",\"nodeName\":\"",
      node,
      node.empty() ? "" : "\"");
}

}  // namespace

FakeCluster::FakeCluster(int nodes, int64_t now_ms, Listener listener)
    : listener_(std::move(listener)) {
  const std::string space = fmt::format(
      R"({{"metadata":{{"name":"{}","uid":"{}","resourceVersion":"{}","labels":{{"fluxqueue.io/managed":"true"}}}}}})",
      kSpace,
      Uid(1, 1),
      ++version_);
  fixed_["namespaces"].push_back({std::string(kSpace), version_, space});
  const std::string queue = fmt::format(
      R"({{"apiVersion":"fluxqueue.io/v1alpha1","kind":"FluxQueue","metadata":{{"name":"default","uid":"{}",)"
      R"("resourceVersion":"{}"}},"spec":{{"pool":"default","strategy":"fcfs","weight":1,"priority":0,)"
      R"("queueDepth":1000,"reservationDepth":0,"defaultDuration":"0","maxDuration":"0"}}}})",
      Uid(2, 1),
      ++version_);
  fixed_["fluxqueues"].push_back({"default", version_, queue});
  AddNodes(nodes, now_ms);
}

void FakeCluster::AddNodes(int count, int64_t now_ms) {
  const std::string resources = fmt::format(
      R"({{"cpu":"{}","memory":"32Gi","pods":"110","ephemeral-storage":"100Gi"}})", kNodeCpu);
  for (int i = 0; i < count; ++i) {
    const std::string name = fmt::format("node-{}", i);
    std::string text = fmt::format(
        R"({{"metadata":{{"name":"{0}","uid":"{1}","resourceVersion":"{2}","labels":)"
        R"({{"kubernetes.io/hostname":"{0}","kubernetes.io/os":"linux","kubernetes.io/arch":"amd64"}}}},)"
        R"("spec":{{}},"status":{{"capacity":{3},"allocatable":{3},"conditions":[{{"type":"Ready",)"
        R"("status":"True","reason":"KubeletReady","lastTransitionTime":"{4}"}}]}}}})",
        name,
        Uid(3, static_cast<uint64_t>(i)),
        ++version_,
        resources,
        Time(now_ms));
    fixed_["nodes"].push_back({name, version_, std::move(text)});
  }
}

size_t FakeCluster::ShapeIndex(const JobShape& shape) {
  for (size_t i = shapes_.size(); i-- > 0;) {
    if (shapes_[i].prefix == shape.prefix) return i;
  }
  shapes_.push_back(shape);
  return shapes_.size() - 1;
}

void FakeCluster::Submit(const JobShape& shape, int64_t now_ms) {
  const size_t number = jobs_.size();
  Job job;
  job.name = fmt::format("{}-{}", shape.prefix, number);
  job.uid = Uid(4, number);
  job.pod_uid = Uid(5, number);
  job.shape = ShapeIndex(shape);
  job.created = now_ms;
  job.annotations = "{}";
  job.job_created_version = job.job_version = ++version_;
  job.pod_created_version = job.pod_version = ++version_;
  by_name_.emplace(job.name, number);
  jobs_.push_back(std::move(job));
  TellJob(jobs_.back(), "ADDED");
  TellPod(jobs_.back(), "ADDED");
}

std::string FakeCluster::JobText(const Job& job) const {
  const JobShape& shape = shapes_[job.shape];
  std::string status = R"({"active":1,"ready":0,"terminating":0,"uncountedTerminatedPods":{}})";
  if (job.ended != 0) {
    status = fmt::format(
        R"({{"succeeded":1,"ready":0,"terminating":0,"uncountedTerminatedPods":{{}},"startTime":"{}",)"
        R"("completionTime":"{}","conditions":[{{"type":"SuccessCriteriaMet","status":"True"}},)"
        R"({{"type":"Complete","status":"True","reason":"CompletionsReached",)"
        R"("message":"Reached expected number of succeeded pods","lastTransitionTime":"{}"}}]}})",
        Time(job.created),
        Time(job.ended),
        Time(job.ended));
  }
  return fmt::format(
      R"({{"metadata":{{"name":"{0}","namespace":"{1}","uid":"{2}","resourceVersion":"{3}","generation":1,)"
      R"("creationTimestamp":"{4}","labels":{{"fluxqueue.io/held":"direct","batch.kubernetes.io/job-name":"{0}"}}}},)"
      R"("spec":{{"parallelism":1,"completions":1,"backoffLimit":6,"selector":{{"matchLabels":)"
      R"({{"batch.kubernetes.io/controller-uid":"{2}"}}}},"template":{{"metadata":{{"labels":)"
      R"({{"fluxqueue.io/held":"direct","batch.kubernetes.io/job-name":"{0}"}}}},"spec":{5}}},)"
      R"("completionMode":"NonIndexed","suspend":false}},"status":{6}}})",
      job.name,
      kSpace,
      job.uid,
      job.job_version,
      Time(job.created),
      PodSpec(shape, {}),
      status);
}

std::string FakeCluster::PodText(const Job& job) const {
  std::string status = R"({"phase":"Pending","qosClass":"Burstable"})";
  if (job.phase == Phase::kBound) {
    status =
        R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"True"}],"qosClass":"Burstable"})";
  } else if (job.phase != Phase::kPending) {
    const bool running = job.phase == Phase::kRunning;
    const std::string state =
        running
            ? fmt::format(R"("running":{{"startedAt":"{}"}})", Time(job.bound))
            : fmt::format(R"("terminated":{{"exitCode":0,"reason":"Completed","finishedAt":"{}"}})",
                          Time(job.ended == 0 ? job.bound : job.ended));
    status = fmt::format(
        R"({{"phase":"{0}","startTime":"{1}","hostIP":"10.0.0.1","podIP":"10.128.0.1","conditions":[)"
        R"({{"type":"PodScheduled","status":"True"}},{{"type":"Initialized","status":"True"}},)"
        R"({{"type":"Ready","status":"{2}"}},{{"type":"ContainersReady","status":"{2}"}}],)"
        R"("containerStatuses":[{{"name":"main","ready":{3},"restartCount":0,"state":{{{4}}}}}],)"
        R"("qosClass":"Burstable"}})",
        running ? "Running" : "Succeeded",
        Time(job.bound),
        running ? "True" : "False",
        running,
        state);
  }
  return fmt::format(
      R"({{"metadata":{{"name":"{0}{1}","generateName":"{0}-","namespace":"{2}","uid":"{3}","resourceVersion":"{4}",)"
      R"("creationTimestamp":"{5}","labels":{{"fluxqueue.io/held":"direct","batch.kubernetes.io/job-name":"{0}",)"
      R"("batch.kubernetes.io/controller-uid":"{6}"}},"annotations":{7},"ownerReferences":[{{"apiVersion":"batch/v1",)"
      R"("kind":"Job","name":"{0}","uid":"{6}","controller":true,"blockOwnerDeletion":true}}],)"
      R"("finalizers":["batch.kubernetes.io/job-tracking"]}},"spec":{8},"status":{9}}})",
      job.name,
      kPodSuffix,
      kSpace,
      job.pod_uid,
      job.pod_version,
      Time(job.created),
      job.uid,
      job.annotations,
      PodSpec(shapes_[job.shape], job.node),
      status);
}

void FakeCluster::TellJob(const Job& job, std::string_view type) const {
  listener_("jobs", Line(type, JobText(job)));
}

void FakeCluster::TellPod(const Job& job, std::string_view type) const {
  listener_("pods", Line(type, PodText(job)));
}

const FakeCluster::Job* FakeCluster::FindJob(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &jobs_[found->second];
}

Answer FakeCluster::Bind(const std::string& pod, std::string_view body, int64_t now_ms) {
  const auto found = pod.ends_with(kPodSuffix)
                         ? by_name_.find(pod.substr(0, pod.size() - kPodSuffix.size()))
                         : by_name_.end();
  if (found == by_name_.end()) return Failure(404, "NotFound", "no pod " + pod);
  const json binding = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!binding.is_object()) return Failure(400, "BadRequest", "the Binding is not JSON");
  Job& job = jobs_[found->second];
  const json meta = binding.value("metadata", json::object());
  if (meta.value("uid", job.pod_uid) != job.pod_uid ||
      meta.value("resourceVersion", std::to_string(job.pod_version)) !=
          std::to_string(job.pod_version)) {
    return Failure(409, "Conflict", "a precondition of the Binding does not hold");
  }
  if (job.phase != Phase::kPending) {
    return Failure(409, "Conflict", "pod " + pod + " is already assigned to a node");
  }
  job.node = binding.value(json::json_pointer("/target/name"), std::string());
  job.annotations = meta.value("annotations", json::object()).dump();
  job.bound = now_ms;
  ++bound_;
  Move(job, Phase::kBound);
  Move(job, Phase::kRunning);
  const int64_t run_ms = shapes_[job.shape].run_ms;
  if (run_ms == 0) {
    End(job, now_ms);
  } else if (run_ms != kForEver) {
    ends_.emplace(now_ms + run_ms, found->second);
  }
  return {201,
          R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})"};
}

void FakeCluster::Move(Job& job, Phase phase) {
  job.phase = phase;
  job.pod_version = ++version_;
  TellPod(job, "MODIFIED");
}

void FakeCluster::End(Job& job, int64_t now_ms) {
  Move(job, Phase::kSucceeded);
  job.ended = now_ms;
  job.job_version = ++version_;
  ++complete_;
  TellJob(job, "MODIFIED");
}

void FakeCluster::Advance(int64_t now_ms) {
  while (!ends_.empty() && ends_.begin()->first <= now_ms) {
    const size_t job = ends_.begin()->second;
    ends_.erase(ends_.begin());
    End(jobs_[job], now_ms);
  }
}

std::optional<int64_t> FakeCluster::NextEnd() const {
  if (ends_.empty()) return std::nullopt;
  return ends_.begin()->first;
}

Answer FakeCluster::Create(std::string_view plural, std::string_view body) {
  if (plural == "events") return {201, std::string(body)};
  if (plural != "fluxjobs") {
    return Failure(405, "MethodNotAllowed", fmt::format("{} cannot be created here", plural));
  }
  const json object = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Failure(400, "BadRequest", "the FluxJob is not JSON");
  const std::string name = object.value(json::json_pointer("/metadata/name"), std::string());
  if (!flux_jobs_.try_emplace(name, FluxJob{std::string(body), {}}).second) {
    return Failure(409, "AlreadyExists", fmt::format("fluxjobs \"{}\" already exists", name));
  }
  return {201, std::string(body)};
}

Answer FakeCluster::Patch(std::string_view plural, const std::string& name, std::string_view body) {
  if (plural != "fluxjobs") {
    return Failure(405, "MethodNotAllowed", fmt::format("{} cannot be patched here", plural));
  }
  const auto found = flux_jobs_.find(name);
  if (found == flux_jobs_.end()) return Failure(404, "NotFound", "no FluxJob " + name);
  found->second.patches.emplace_back(body);
  return {200, std::string(body)};
}

std::string FakeCluster::FluxJobText(const FluxJob& flux_job) const {
  json object = json::parse(flux_job.text, nullptr, /*allow_exceptions=*/false);
  for (const std::string& patch : flux_job.patches) {
    object.merge_patch(json::parse(patch, nullptr, /*allow_exceptions=*/false));
  }
  return object.dump();
}

std::vector<std::string> FakeCluster::Items(std::string_view plural,
                                            size_t first,
                                            size_t limit) const {
  std::vector<std::string> items;
  const auto add = [&](const auto& objects, const auto& text) {
    if (first >= objects.size()) return;
    auto object = std::next(objects.begin(), static_cast<std::ptrdiff_t>(first));
    while (object != objects.end() && items.size() < limit) items.push_back(text(*object++));
  };
  if (plural == "jobs") {
    add(jobs_, [this](const Job& job) { return JobText(job); });
  } else if (plural == "pods") {
    add(jobs_, [this](const Job& job) { return PodText(job); });
  } else if (plural == "fluxjobs") {
    add(flux_jobs_, [this](const auto& named) { return FluxJobText(named.second); });
  } else if (const auto found = fixed_.find(plural); found != fixed_.end()) {
    add(found->second, [](const Fixed& object) { return object.text; });
  }
  return items;
}

Answer FakeCluster::List(std::string_view plural, std::string_view after, size_t limit) const {
  // The token keeps the version of the first page: what changed since is told by the watch.
  size_t first = 0;
  uint64_t version = version_;
  if (const size_t dot = after.find('.'); dot != std::string_view::npos) {
    first = std::stoul(std::string(after.substr(0, dot)));
    version = std::stoull(std::string(after.substr(dot + 1)));
  }
  std::vector<std::string> items = Items(plural, first, limit + 1);
  std::string next;
  if (items.size() > limit) {
    items.pop_back();
    next = fmt::format("{}.{}", first + limit, version);
  }
  return ListOf(version, next, fmt::format("{}", fmt::join(items, ",")));
}

Answer FakeCluster::EmptyList() const {
  return ListOf(version_, "", "");
}

Answer FakeCluster::Get(std::string_view plural, std::string_view name) const {
  if (plural == "jobs") {
    if (const Job* job = FindJob(name)) return {200, JobText(*job)};
  } else if (plural == "pods" && name.ends_with(kPodSuffix)) {
    name.remove_suffix(kPodSuffix.size());
    if (const Job* job = FindJob(name)) return {200, PodText(*job)};
  } else if (plural == "fluxjobs") {
    const auto found = flux_jobs_.find(name);
    if (found != flux_jobs_.end()) return {200, FluxJobText(found->second)};
  } else if (const auto found = fixed_.find(plural); found != fixed_.end()) {
    for (const Fixed& object : found->second) {
      if (object.name == name) return {200, object.text};
    }
  }
  return Failure(404, "NotFound", fmt::format("{} \"{}\" not found", plural, name));
}

std::string FakeCluster::NewerThan(std::string_view plural, uint64_t version) const {
  std::string lines;
  if (plural == "jobs" || plural == "pods") {
    for (const Job& job : jobs_) {
      const bool is_job = plural == "jobs";
      if ((is_job ? job.job_version : job.pod_version) <= version) continue;
      const uint64_t created = is_job ? job.job_created_version : job.pod_created_version;
      lines += Line(created > version ? "ADDED" : "MODIFIED", is_job ? JobText(job) : PodText(job));
    }
  } else if (const auto found = fixed_.find(plural); found != fixed_.end()) {
    for (const Fixed& object : found->second) {
      if (object.version > version) lines += Line("ADDED", object.text);
    }
  }
  return lines;
}

std::string FakeCluster::Bookmark(std::string_view plural) const {
  return Line(
      "BOOKMARK",
      fmt::format(R"({{"kind":"{}","metadata":{{"resourceVersion":"{}"}}}})", plural, version_));
}

std::vector<JobTimes> FakeCluster::Times(std::string_view prefix) const {
  std::vector<JobTimes> times;
  for (const Job& job : jobs_) {
    if (shapes_[job.shape].prefix != prefix) continue;
    times.push_back({job.uid, job.created, job.bound, job.ended});
  }
  return times;
}

}  // namespace fluxqueue::bench
