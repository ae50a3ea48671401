#include "services/binder/adapters/bypass_guard.h"

#include <exception>
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

BypassGuard::BypassGuard(kubernetes::Cluster& cluster,
                         BinderMetrics& metrics,
                         const Clock& clock,
                         std::string instance,
                         std::function<void(const delivery::QuarantineRow&)> tell)
    : cluster_(cluster),
      metrics_(metrics),
      clock_(clock),
      instance_(std::move(instance)),
      tell_(std::move(tell)) {}

kubernetes::Informers::List BypassGuard::MakeInformers() {
  const auto unread = [this] { metrics_.UnreadableObject(); };
  kubernetes::Informers::List informers;
  informers.push_back(std::make_unique<kubernetes::Informer<kubernetes::Namespace>>(
      cluster_,
      kubernetes::InformerOptions{.watch = {.resource = kubernetes::kNamespaces}, .unread = unread},
      kubernetes::Reader<kubernetes::Namespace>{.parse = kubernetes::ParseNamespace},
      inbox_));
  informers.push_back(std::make_unique<kubernetes::Informer<kubernetes::ObjectMeta>>(
      cluster_,
      kubernetes::InformerOptions{
          .watch = {.resource = kubernetes::kPods,
                    .selector = {.labels = std::string(kubernetes::kBypassLabels),
                                 .fields = std::string(kubernetes::kBypassFields)}},
          .unread = unread},
      kubernetes::Reader<kubernetes::ObjectMeta>{.parse = kubernetes::ParseMeta},
      inbox_));
  return informers;
}

absl::Status BypassGuard::Run(const std::stop_token& stop) {
  kubernetes::Informers informers;
  informers.Start(MakeInformers());
  while (!stop.stop_requested()) {
    inbox_.WaitForItems(stop, kLookAgain);
    for (const News& news : inbox_.Take()) {
      try {
        Learn(news);
      } catch (const std::exception& error) {
        LeaveOut(news, error.what());
      }
    }
    metrics_.Bypassing(book_.size());
    for (const BypassStep& step : book_.TakeSteps(clock_.Monotonic(), kMostSteps)) {
      if (stop.stop_requested()) break;
      Do(step);
    }
  }
  return absl::OkStatus();
}

void BypassGuard::Learn(const News& news) {
  using kubernetes::Seen;
  if (const auto* space = std::get_if<Seen<kubernetes::Namespace>>(&news)) {
    book_.Saw(space->object);
  } else if (const auto* pod = std::get_if<Seen<kubernetes::ObjectMeta>>(&news)) {
    book_.Saw(pod->object);
  } else if (const auto* gone = std::get_if<kubernetes::Gone>(&news)) {
    if (gone->resource == kubernetes::kPods.plural) return book_.PodGone(gone->uid);
    book_.NamespaceGone(gone->name);
  } else if (const auto* unread = std::get_if<kubernetes::Unread>(&news)) {
    LearnUnread(*unread);
  }
}

void BypassGuard::LearnUnread(const kubernetes::Unread& unread) {
  if (unread.resource != kubernetes::kPods.plural || book_.Knows(unread.uid)) return;
  kubernetes::ObjectMeta pod;
  pod.namespace_name = unread.space;
  pod.name = unread.name;
  pod.uid = unread.uid;
  book_.Saw(pod);
}

void BypassGuard::LeaveOut(const News& news, const std::string& why) {
  delivery::QuarantineRow row{.object = {.kind = "Namespace", .uid = ""}, .reason = why};
  if (const auto* pod = std::get_if<kubernetes::Seen<kubernetes::ObjectMeta>>(&news)) {
    const kubernetes::ObjectMeta& meta = pod->object;
    row.object = {"Pod", meta.namespace_name, meta.name, meta.uid, meta.resource_version};
    tell_(row);
  } else if (const auto* space = std::get_if<kubernetes::Seen<kubernetes::Namespace>>(&news)) {
    row.object.name = space->object.name;
  }
  metrics_.UnreadableObject();
  LogWarning("the guard of the queue cannot handle an object, and leaves it out until it changes",
             {{"kind", row.object.kind},
              {"namespace", row.object.space},
              {"name", row.object.name},
              {"error", why}});
}

void BypassGuard::Do(const BypassStep& step) {
  switch (step.kind) {
    case BypassStep::Kind::kCheck:
      return Check(step.claim);
    case BypassStep::Kind::kStop:
      return Stop(step);
    case BypassStep::Kind::kTell:
      return Tell(step);
    case BypassStep::Kind::kLook:
      return Look(step.space);
  }
}

void BypassGuard::Check(const kubernetes::OwnerClaim& claim) {
  const bool node = claim.kind == kubernetes::OwnerClaim::Kind::kNode;
  const auto text =
      cluster_.Get(node ? kubernetes::kNodes : kubernetes::kDaemonSets, claim.space, claim.name);
  if (absl::IsNotFound(text.status())) return book_.Checked(claim, false);
  const absl::StatusOr<kubernetes::ObjectMeta> owner =
      text.ok() ? kubernetes::ParseMeta(*text)
                : absl::StatusOr<kubernetes::ObjectMeta>(text.status());
  if (owner.ok()) return book_.Checked(claim, owner->uid == claim.uid);
  LogWarning("the owner that a pod names could not be looked up, and is asked for again",
             {{"kind", node ? "Node" : "DaemonSet"},
              {"namespace", claim.space},
              {"name", claim.name},
              {"error", Message(owner.status())}});
}

void BypassGuard::Stop(const BypassStep& step) {
  const absl::Status deleted = cluster_.Delete(
      kubernetes::kPods, step.space, step.name, {.preconditions = {.uid = step.uid}});
  if (deleted.ok()) return metrics_.BypassStopped();
  if (absl::IsNotFound(deleted) || absl::IsAborted(deleted)) return;
  LogWarning("a pod that bypasses the queue could not be stopped, and is tried again",
             {{"namespace", step.space}, {"pod", step.name}, {"error", Message(deleted)}});
}

void BypassGuard::Tell(const BypassStep& step) {
  LogWarning("a pod bypasses the queue",
             {{"namespace", step.space}, {"pod", step.name}, {"uid", step.uid}});
  WriteEvent({.name = fmt::format("fluxqueue-bypass-{}", step.uid),
              .component = "binder",
              .instance = instance_,
              .type = "Warning",
              .reason = "BypassesQueue",
              .action = step.strict ? "Stop" : "Tell",
              .note = fmt::format("{} {}", step.name, step.strict ? kStopped : kTold),
              .regarding = {"v1", "Pod", step.space, step.name, step.uid},
              .at = clock_.Now()});
}

void BypassGuard::Look(const std::string& space) {
  const absl::StatusOr<std::vector<Unqueued>> waiting = Waiting(space);
  if (!waiting.ok()) {
    LogWarning("what waits in a namespace could not be listed, and is asked for again",
               {{"namespace", space}, {"error", Message(waiting.status())}});
    return book_.LookFailed(space, clock_.Monotonic());
  }
  for (const Unqueued& object : *waiting) {
    WriteEvent({.name = fmt::format("fluxqueue-unqueued-{}", object.uid),
                .component = "binder",
                .instance = instance_,
                .type = "Warning",
                .reason = "NotQueued",
                .action = "Tell",
                .note = object.note,
                .regarding = {object.kind == "Job" ? "batch/v1" : "v1",
                              object.kind,
                              space,
                              object.name,
                              object.uid},
                .at = clock_.Now()});
  }
}

absl::StatusOr<std::vector<Unqueued>> BypassGuard::Waiting(const std::string& space) {
  std::vector<kubernetes::ObjectMeta> pods;
  std::vector<kubernetes::Job> jobs;
  const std::string labels(kubernetes::kBypassLabels);
  // One that cannot be read is left out.
  const auto list = [this](const auto& resource, const auto& selector, auto parse, auto* into) {
    return cluster_
        .List(resource,
              selector,
              [&](std::string_view text) {
                if (auto object = parse(text); object.ok()) into->push_back(*std::move(object));
                return absl::OkStatus();
              })
        .status();
  };
  RETURN_IF_ERROR(list(
      kubernetes::kPods,
      kubernetes::Selector{.space = space, .labels = labels, .fields = std::string(kWaitingFields)},
      kubernetes::ParseMeta,
      &pods));
  RETURN_IF_ERROR(list(kubernetes::kJobs,
                       kubernetes::Selector{.space = space, .labels = labels},
                       kubernetes::ParseJob,
                       &jobs));
  return UnqueuedOf({.name = space, .labels = {}}, std::move(pods), std::move(jobs));
}

void BypassGuard::WriteEvent(const kubernetes::Event& event) {
  const auto created =
      cluster_.Create(kubernetes::kEvents, event.regarding.space, kubernetes::EventText(event));
  if (created.ok() || absl::IsAlreadyExists(created.status())) return;
  LogWarning("Event not written",
             {{"namespace", event.regarding.space},
              {"object", event.regarding.name},
              {"error", Message(created.status())}});
}

}  // namespace fluxqueue::binder
