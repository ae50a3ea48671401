#include "services/binder/adapters/bypass_guard.h"

#include <utility>

#include <fmt/format.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/event.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/resource.h"

namespace fluxqueue::binder {
namespace {

// Between two looks while nothing is heard: what was to be stopped may be due again.
constexpr Millis kLookAgain{1'000};
// In one round, so that what comes meanwhile is heard of.
constexpr size_t kMostSteps = 100;

constexpr std::string_view kTold =
    "runs in a managed namespace, and has not been through its queue: it uses nodes that no limit "
    "and no reservation knows of";
constexpr std::string_view kStopped =
    "is stopped: it has not been through the queue of its namespace, which says "
    "fluxqueue.io/enforce: strict";

}  // namespace

BypassGuard::BypassGuard(kubernetes::Client& client,
                         BinderMetrics& metrics,
                         const Clock& clock,
                         std::string instance)
    : client_(client), metrics_(metrics), clock_(clock), instance_(std::move(instance)) {
  inbox_.SetWake([this] {
    { const std::lock_guard lock(mutex_); }
    changed_.notify_one();
  });
}

absl::Status BypassGuard::Run(const std::stop_token& stop) {
  const kubernetes::Watcher namespaces(
      client_, {.resource = kubernetes::kNamespaces}, [this](const kubernetes::WatchEvent& event) {
        OnNamespace(event);
      });
  const kubernetes::Watcher pods(client_,
                                 {.resource = kubernetes::kPods,
                                  .selector = {.labels = std::string(kubernetes::kBypassLabels),
                                               .fields = std::string(kubernetes::kBypassFields)}},
                                 [this](const kubernetes::WatchEvent& event) { OnPod(event); });
  while (!stop.stop_requested()) {
    WaitForNews(stop);
    for (const News& news : inbox_.Take()) Learn(news);
    metrics_.Bypassing(book_.size());
    for (const BypassStep& step : book_.TakeSteps(clock_.Monotonic(), kMostSteps)) {
      if (stop.stop_requested()) break;
      Do(step);
    }
  }
  return absl::OkStatus();
}

void BypassGuard::WaitForNews(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, kLookAgain, [this] { return !inbox_.empty(); });
}

void BypassGuard::OnNamespace(const kubernetes::WatchEvent& event) {
  using Kind = kubernetes::WatchEvent::Kind;
  if (event.kind == Kind::kSynced) return;
  const std::string name(event.name);
  // Which is never a uid's.
  const std::string key = "namespace/" + name;
  if (event.kind == Kind::kDeleted) return inbox_.Post(key, NamespaceWasGone{name});
  absl::StatusOr<kubernetes::Namespace> space = kubernetes::ParseNamespace(event.object);
  if (space.ok()) return inbox_.Post(key, *std::move(space));
  LogError("namespace cannot be read: what bypasses its queue is not seen",
           {{"namespace", name}, {"error", Message(space.status())}});
}

void BypassGuard::OnPod(const kubernetes::WatchEvent& event) {
  using Kind = kubernetes::WatchEvent::Kind;
  if (event.kind == Kind::kSynced) return;
  const std::string uid(event.uid);
  if (event.kind == Kind::kDeleted) return inbox_.Post(uid, PodWasGone{uid});
  absl::StatusOr<kubernetes::ObjectMeta> meta = kubernetes::ParseMeta(event.object);
  if (meta.ok()) return inbox_.Post(uid, *std::move(meta));
  LogError("pod cannot be read: whether it bypasses the queue is not seen",
           {{"namespace", event.space}, {"pod", event.name}, {"error", Message(meta.status())}});
}

void BypassGuard::Learn(const News& news) {
  if (const auto* space = std::get_if<kubernetes::Namespace>(&news)) return book_.Saw(*space);
  if (const auto* pod = std::get_if<kubernetes::ObjectMeta>(&news)) return book_.Saw(*pod);
  if (const auto* gone = std::get_if<PodWasGone>(&news)) return book_.PodGone(gone->uid);
  book_.NamespaceGone(std::get<NamespaceWasGone>(news).name);
}

void BypassGuard::Do(const BypassStep& step) {
  if (step.kind == BypassStep::Kind::kStop) {
    Stop(step);
  } else {
    Tell(step);
  }
}

void BypassGuard::Stop(const BypassStep& step) {
  const absl::Status deleted = client_.Delete(
      kubernetes::kPods, step.space, step.name, {.preconditions = {.uid = step.uid}});
  if (deleted.ok()) return metrics_.BypassStopped();
  if (absl::IsNotFound(deleted) || absl::IsAborted(deleted)) return;
  LogWarning("a pod that bypasses the queue could not be stopped, and is tried again",
             {{"namespace", step.space}, {"pod", step.name}, {"error", Message(deleted)}});
}

void BypassGuard::Tell(const BypassStep& step) {
  LogWarning("a pod bypasses the queue",
             {{"namespace", step.space}, {"pod", step.name}, {"uid", step.uid}});
  const auto created =
      client_.Create(kubernetes::kEvents,
                     step.space,
                     kubernetes::EventText(
                         {.name = fmt::format("fluxqueue-bypass-{}", step.uid),
                          .component = "binder",
                          .instance = instance_,
                          .type = "Warning",
                          .reason = "BypassesQueue",
                          .action = step.strict ? "Stop" : "Tell",
                          .note = fmt::format("{} {}", step.name, step.strict ? kStopped : kTold),
                          .regarding = {"v1", "Pod", step.space, step.name, step.uid},
                          .at = clock_.Now()}));
  if (created.ok() || absl::IsAlreadyExists(created.status())) return;
  LogWarning("Event not written",
             {{"namespace", step.space}, {"pod", step.name}, {"error", Message(created.status())}});
}

}  // namespace fluxqueue::binder
