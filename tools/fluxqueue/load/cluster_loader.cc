#include "tools/fluxqueue/load/cluster_loader.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "libs/base/backoff.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/resource.h"
#include "libs/kubernetes/views.h"

#include "tools/fluxqueue/load/load_objects.h"

namespace fluxqueue::load {
namespace {

using std::chrono::steady_clock;

constexpr size_t kCallsAtOnce = 16;
constexpr Millis kLook{500};  // how often progress is shown and a deletion looked at
constexpr auto kCleanUpTime = std::chrono::minutes(15);

std::string LabelSelector(const std::string& space) {
  return fmt::format("{}={}", kLoadLabel, space);
}

kubernetes::WatcherOptions WatchOf(const kubernetes::Resource& resource,
                                   const std::string& space,
                                   std::string labels = {}) {
  kubernetes::WatcherOptions options;
  options.resource = resource;
  options.selector.space = space;
  options.selector.labels = std::move(labels);
  return options;
}

}  // namespace

ClusterLoader::ClusterLoader(kubernetes::Client& client,
                             const Clock& clock,
                             const Plan& plan,
                             LoaderOptions options)
    : client_(client),
      clock_(clock),
      plan_(plan),
      options_(std::move(options)),
      tracker_(plan, options_.managed) {}

absl::StatusOr<LoadReport> ClusterLoader::Run(std::stop_token stop) {
  deadline_ = clock_.Monotonic() + options_.timeout;
  RETURN_IF_ERROR(CheckRoom());
  const std::string space = NamespaceObject(options_.space, options_.managed);
  RETURN_IF_ERROR(client_.Create(kubernetes::kNamespaces, {}, space).status());
  absl::StatusOr<LoadReport> report = Play(stop);
  if (options_.keep) return report;
  const absl::Status cleaned = CleanUp();
  if (report.ok() && !cleaned.ok()) return cleaned;
  return report;
}

absl::Status ClusterLoader::CheckRoom() {
  const auto none = [](std::string_view) { return absl::OkStatus(); };
  if (options_.managed) {
    const absl::Status known = client_.List(kubernetes::kFluxQueues, {}, none).status();
    if (absl::IsNotFound(known)) {
      return MakeStatus(absl::StatusCode::kFailedPrecondition,
                        "this cluster knows no FluxQueues: install Fluxqueue (tools/up), or let "
                        "Kubernetes schedule the load (--unmanaged)");
    }
    RETURN_IF_ERROR(known);
  }
  absl::Status space = client_.Get(kubernetes::kNamespaces, {}, options_.space).status();
  if (!space.ok() && !absl::IsNotFound(space)) return space;
  bool nodes = false;
  RETURN_IF_ERROR(client_
                      .List(kubernetes::kNodes,
                            {.labels = LabelSelector(options_.space)},
                            [&nodes](std::string_view) {
                              nodes = true;
                              return absl::OkStatus();
                            })
                      .status());
  if (!space.ok() && !nodes) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kAlreadyExists,
                    "namespace {0} or nodes labelled {1}={0} are there already, from an earlier "
                    "load: take them away (kubectl delete namespace {0}; kubectl delete nodes -l "
                    "{1}={0}) or choose another --namespace",
                    options_.space,
                    kLoadLabel);
}

absl::Status ClusterLoader::MakeNodes(std::stop_token stop) {
  const std::string now = FormatTime(clock_.Now());
  return ForEach(plan_.nodes.size(), [&](size_t i) {
    if (stop.stop_requested()) return absl::CancelledError("stopped");
    const std::string body = NodeObject(plan_.nodes[i], options_.space, now);
    return Insist(
        [&](bool repeated) {
          const absl::Status made = client_.Create(kubernetes::kNodes, {}, body).status();
          return repeated && absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
        },
        stop);
  });
}

// Ready, and rid of the taint that every new node begins with.
absl::Status ClusterLoader::AwaitNodes(std::stop_token stop) {
  std::set<std::string, std::less<>> ready;
  kubernetes::Watcher watcher(client_,
                              WatchOf(kubernetes::kNodes, {}, LabelSelector(options_.space)),
                              [&](const kubernetes::WatchEvent& event) {
                                if (event.object.empty()) return;
                                const absl::StatusOr<kubernetes::Node> node =
                                    kubernetes::ParseNode(event.object);
                                const std::lock_guard lock(mutex_);
                                if (node.ok() && node->ready && node->taints.empty())
                                  ready.insert(node->meta.name);
                                changed_.notify_all();
                              });
  std::unique_lock lock(mutex_);
  while (ready.size() < plan_.nodes.size()) {
    progress_.Show(fmt::format("nodes Ready {}/{}", ready.size(), plan_.nodes.size()));
    changed_.wait_for(lock, stop, kLook, [&] { return ready.size() == plan_.nodes.size(); });
    if (stop.stop_requested()) return absl::CancelledError("stopped");
    if (clock_.Monotonic() > deadline_) {
      return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                        "only {} of {} nodes are Ready: is kwok running?",
                        ready.size(),
                        plan_.nodes.size());
    }
  }
  progress_.Show(fmt::format("nodes Ready {0}/{0}", ready.size()));
  lock.unlock();  // the watcher's callback may wait for it, and its end waits for the callback
  watcher.Stop();
  progress_.Done();
  return absl::OkStatus();
}

absl::StatusOr<LoadReport> ClusterLoader::Play(std::stop_token stop) {
  RETURN_IF_ERROR(MakeNodes(stop));
  RETURN_IF_ERROR(AwaitNodes(stop));
  kubernetes::Watcher jobs(client_,
                           WatchOf(kubernetes::kJobs, options_.space),
                           [this](const kubernetes::WatchEvent& event) { OnJob(event); });
  std::unique_ptr<kubernetes::Watcher> flux_jobs;
  if (options_.managed) {
    flux_jobs = std::make_unique<kubernetes::Watcher>(
        client_,
        WatchOf(kubernetes::kFluxJobs, options_.space),
        [this](const kubernetes::WatchEvent& event) { OnFluxJob(event); });
  }
  begin_ = clock_.Monotonic();
  {
    std::jthread submitter([this](std::stop_token enough) { Submit(enough); });
    AwaitEnds(stop);
  }
  jobs.Stop();
  if (flux_jobs != nullptr) flux_jobs->Stop();
  progress_.Done();
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  RETURN_IF_ERROR(unreadable_);
  return MakeReport(plan_, tracker_.records());
}

void ClusterLoader::Submit(std::stop_token stop) {
  // Cannot fail: what is refused is in the tracker.
  ForEach(plan_.jobs.size(), [this, stop](size_t index) {
    SubmitOne(index, stop);
    return absl::OkStatus();
  }).IgnoreError();
}

void ClusterLoader::SubmitOne(size_t index, std::stop_token stop) {
  const PlannedJob& job = plan_.jobs[index];
  if (!SleepUntil(begin_ + job.submit, stop)) return;
  const std::string body = JobObject(job, options_.space, options_.queue);
  const int64_t now = NowMs();
  const absl::Status made = Insist(
      [&](bool repeated) {
        const absl::Status once = client_.Create(kubernetes::kJobs, options_.space, body).status();
        return repeated && absl::IsAlreadyExists(once) ? absl::OkStatus() : once;
      },
      stop);
  const std::lock_guard lock(mutex_);
  if (made.ok()) {
    tracker_.Submitted(index, now);
  } else if (!IsTransient(made)) {
    tracker_.Refused(index, Message(made), now);
  }
  changed_.notify_all();
}

void ClusterLoader::AwaitEnds(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && clock_.Monotonic() < deadline_ && unreadable_.ok()) {
    const bool finished =
        changed_.wait_for(lock, stop, kLook, [this] { return tracker_.Finished(); });
    ShowProgress(tracker_.counts());
    if (finished) return;
  }
}

void ClusterLoader::OnJob(const kubernetes::WatchEvent& event) {
  if (event.kind == kubernetes::WatchEvent::Kind::kSynced) return;
  const int64_t now = NowMs();
  const std::lock_guard lock(mutex_);
  if (event.kind == kubernetes::WatchEvent::Kind::kDeleted) {
    tracker_.SawJobGone(event.name, now);
  } else {
    unreadable_.Update(tracker_.SawJob(event.object, now));
  }
  if (tracker_.Finished()) changed_.notify_all();
}

void ClusterLoader::OnFluxJob(const kubernetes::WatchEvent& event) {
  if (event.object.empty()) return;
  const std::lock_guard lock(mutex_);
  unreadable_.Update(tracker_.SawFluxJob(event.object));
  if (tracker_.Finished()) changed_.notify_all();
}

void ClusterLoader::ShowProgress(const Counts& counts) {
  const double seconds = std::chrono::duration<double>(clock_.Monotonic() - begin_).count();
  progress_.Show(fmt::format(
      "{:.0f} s: submitted {}/{}, running {}, ended {}{}, {:.1f} jobs/s",
      seconds,
      counts.submitted,
      plan_.jobs.size(),
      counts.running,
      counts.ended,
      counts.rejected == 0 ? std::string() : fmt::format(" ({} rejected)", counts.rejected),
      static_cast<double>(counts.ended) / std::max(seconds, 0.001)));
}

// The namespace first: while its pods go, their nodes are there.
absl::Status ClusterLoader::CleanUp() {
  deadline_ = clock_.Monotonic() + kCleanUpTime;
  RETURN_IF_ERROR(AwaitNamespaceGone());
  return ForEach(plan_.nodes.size(), [this](size_t i) {
    return Insist(
        [&](bool) {
          const absl::Status gone = client_.Delete(kubernetes::kNodes, {}, plan_.nodes[i].name);
          return absl::IsNotFound(gone) ? absl::OkStatus() : gone;
        },
        {});
  });
}

absl::Status ClusterLoader::AwaitNamespaceGone() {
  const auto removal = [this](bool) {
    return client_.Delete(kubernetes::kNamespaces, {}, options_.space);
  };
  const steady_clock::time_point begin = clock_.Monotonic();
  absl::Status status = Insist(removal, {});
  while (status.ok() || IsTransient(status)) {
    const steady_clock::time_point now = clock_.Monotonic();
    if (now > deadline_) {
      return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                        "namespace {} has still not gone; its nodes are left too",
                        options_.space);
    }
    progress_.Show(
        fmt::format("taking the namespace away, {} s",
                    std::chrono::duration_cast<std::chrono::seconds>(now - begin).count()));
    SleepUntil(now + kLook, {});
    status = client_.Get(kubernetes::kNamespaces, {}, options_.space).status();
  }
  progress_.Done();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status ClusterLoader::Insist(const std::function<absl::Status(bool)>& call,
                                   std::stop_token stop) {
  Backoff backoff(Millis(100), Millis(2000));
  for (bool repeated = false;; repeated = true) {
    absl::Status status = call(repeated);
    if (!IsTransient(status) || clock_.Monotonic() > deadline_) return status;
    const Millis wait = kubernetes::RetryAfter(status).value_or(backoff.Next());
    if (!SleepUntil(clock_.Monotonic() + wait, stop)) return status;
  }
}

absl::Status ClusterLoader::ForEach(size_t count, const std::function<absl::Status(size_t)>& fn) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  absl::Status first;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      const absl::Status status = fn(i);
      if (status.ok()) continue;
      next = count;
      const std::lock_guard lock(mutex);
      first.Update(status);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(count, kCallsAtOnce); ++i) threads.emplace_back(work);
  }
  return first;
}

bool ClusterLoader::SleepUntil(steady_clock::time_point time, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

int64_t ClusterLoader::NowMs() const {
  return std::chrono::duration_cast<Millis>(clock_.Now().time_since_epoch()).count();
}

}  // namespace fluxqueue::load
