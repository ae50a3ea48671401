#include "services/admission/domain/webhook.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/kubernetes/group.h"
#include "libs/kubernetes/json_text.h"
#include "libs/kubernetes/kinds.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/names.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/places.h"
#include "libs/kubernetes/submission.h"
#include "services/admission/domain/group_rules.h"
#include "services/admission/domain/hold_patch.h"
#include "services/admission/domain/makers.h"
#include "services/admission/domain/place_rules.h"
#include "services/admission/domain/queue_rules.h"
#include "services/admission/domain/scale_rules.h"
#include "services/admission/domain/sketch.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fluxqueue::admission {
namespace {

constexpr std::string_view kNodesGroup = "system:nodes";

// `field`: that has the name, for the person who wrote it.
Verdict RefuseForAbsent(std::string_view field,
                        Absent::Kind kind,
                        std::string name,
                        const std::string& message) {
  if (!kubernetes::IsDnsSubdomain(name)) {
    return Refuse(
        fmt::format("{}: it is not the name of an object: allowed are up to 253 of a-z, "
                    "0-9, '-' and '.', beginning and ending with a letter or digit",
                    field));
  }
  Verdict verdict = Refuse(message);
  verdict.absent = Absent{kind, std::move(name)};
  return verdict;
}

// What the workload refers to must be there, or its pods could never be made or queued.
std::optional<Verdict> CheckReferences(const kubernetes::PodSpec& spec,
                                       std::string_view space,
                                       const ClusterFacts& facts) {
  const kubernetes::TemplateContext& context = facts.ContextOf(space);
  if (!spec.priority_class.empty() && !context.priorities.contains(spec.priority_class)) {
    return RefuseForAbsent(
        "priorityClassName",
        Absent::Kind::kPriorityClass,
        spec.priority_class,
        fmt::format(
            "priorityClassName '{}': there is no such PriorityClass; create it, or name one "
            "of `kubectl get priorityclasses`",
            spec.priority_class));
  }
  if (!spec.runtime_class.empty() && !context.runtime_classes.contains(spec.runtime_class)) {
    return RefuseForAbsent(
        "runtimeClassName",
        Absent::Kind::kRuntimeClass,
        spec.runtime_class,
        fmt::format(
            "runtimeClassName '{}': there is no such RuntimeClass; create it, or name one of "
            "`kubectl get runtimeclasses`",
            spec.runtime_class));
  }
  return std::nullopt;
}

struct Space {
  kubernetes::Namespace value;
  bool known = false;
};

// Who asks, as the API server says, and what by.
struct Asker {
  const Space& space;
  std::string user;
  std::vector<std::string> groups;
  std::string admitted_to;  // as stamped
  std::string qos;
  bool controller = false;  // who makes it for others
};

// The object of which pods or Jobs are to be made, while its template is judged.
struct Root {
  const kubernetes::Kind& kind;
  kubernetes::ObjectMeta meta;
};

std::optional<Verdict> CheckQueue(const events::v1::JobSubmitted& submission,
                                  const Asker& asker,
                                  const Root* root,
                                  const ClusterFacts& facts) {
  const kubernetes::FluxQueue* queue = facts.FindQueue(submission.queue());
  if (queue == nullptr) {
    return RefuseForAbsent(kubernetes::kQueueKey,
                           Absent::Kind::kQueue,
                           submission.queue(),
                           NoSuchQueue(submission.queue(), facts.queues()));
  }
  const Asked asked{.submission = submission,
                    .space = asker.space.value,
                    .user = asker.user,
                    .groups = asker.groups,
                    .qos = asker.qos,
                    .admitted_to = asker.admitted_to};
  auto problem = JobProblem(asked, *queue, facts.queues());
  // How full the namespace is counts when the pods and Jobs of a template are made.
  if (!problem && root == nullptr) {
    problem = QuotaProblem(asked, *queue, facts.queues(), facts.usage());
  }
  if (!problem) return std::nullopt;
  Verdict verdict = Refuse(*problem);
  // Its labels may be what the queue asks for.
  if (!asker.space.known) {
    verdict.absent = Absent{Absent::Kind::kNamespace, asker.space.value.name};
  }
  return verdict;
}

// What every workload of ours must pass; unset: it may be held. `queue`: its namespace's, which it
// is given; empty: it names its own. What a controller makes by a template from before may not be
// for that queue: then it goes by the one that it went by before, and `queue` is empty.
std::optional<Verdict> CheckSubmission(std::string* queue,
                                       absl::StatusOr<events::v1::JobSubmitted>* submission,
                                       const Asker& asker,
                                       const Root* root,
                                       const ClusterFacts& facts,
                                       const WebhookOptions& options) {
  if (!submission->ok()) return Refuse(submission->status());
  events::v1::JobSubmitted& submitted = **submission;
  if (auto problem = JobspecProblem(submitted.spec(), options.max_jobspec_bytes)) {
    return Refuse(*problem);
  }
  if (queue->empty()) return CheckQueue(submitted, asker, root, facts);
  const std::string before = std::exchange(*submitted.mutable_queue(), *queue);
  std::optional<Verdict> verdict = CheckQueue(submitted, asker, root, facts);
  if (verdict && asker.controller) {
    submitted.set_queue(before);
    queue->clear();
    return CheckQueue(submitted, asker, root, facts);
  }
  if (verdict) verdict->message = fmt::format("label of the namespace: {}", verdict->message);
  return verdict;
}

// The API server takes long to judge a change of an object that has very many.
std::optional<Verdict> CheckAnnotations(const char* field, const kubernetes::StringMap& of) {
  if (of.size() <= kubernetes::kMostAnnotations) return std::nullopt;
  return Refuse(
      fmt::format("{}: these are {}, and what is queued may have {}; keep them in a ConfigMap",
                  field,
                  of.size(),
                  kubernetes::kMostAnnotations));
}

// Why the Job cannot be given the rule that ignores disruptions.
std::optional<std::string> RuleProblem(const kubernetes::Job& job) {
  constexpr int64_t kMostRules = 20;
  if (job.pod.restart_policy != "Never") {
    return fmt::format(
        "{}: \"true\": spec.template.spec.restartPolicy is '{}'; allowed with it is Never, as with "
        "any podFailurePolicy",
        kubernetes::kIgnoreDisruptionsKey,
        job.pod.restart_policy);
  }
  if (job.failure_rules < kMostRules) return std::nullopt;
  return fmt::format(
      "{}: \"true\": spec.podFailurePolicy has {} rules, and this would be one more; allowed are "
      "{}",
      kubernetes::kIgnoreDisruptionsKey,
      job.failure_rules,
      kMostRules);
}

void WarnOfScheduler(const kubernetes::PodSpec& spec, Verdict* verdict) {
  if (spec.scheduler_name.empty() || spec.scheduler_name == kubernetes::kSchedulerName ||
      spec.scheduler_name == kubernetes::kDefaultScheduler) {
    return;
  }
  verdict->warnings.push_back(
      fmt::format("schedulerName '{}' does not apply: Fluxqueue schedules this workload (label "
                  "{}=false opts out)",
                  Clean(spec.scheduler_name, kMostRefusalBytes),
                  kubernetes::kManagedLabel));
}

// Pods of other Jobs are not stopped one by one: a Job that is suspended is charged for none.
void WarnOfBackoffLimit(const kubernetes::Job& job,
                        const kubernetes::UserKeys& keys,
                        const kubernetes::FluxQueue& queue,
                        const ClusterFacts& facts,
                        Verdict* verdict) {
  if (job.ignores_disruptions || keys.ignore_disruptions.has_value()) return;
  if (!kubernetes::IsControlled(job) || !MayBeStopped(queue, facts.queues())) return;
  verdict->warnings.push_back(
      fmt::format("its pods may be stopped one by one for other jobs, and each counts against "
                  "backoffLimit; {}=true when it is made, with restartPolicy: Never, keeps them "
                  "from that",
                  kubernetes::kIgnoreDisruptionsKey));
}

Space SpaceOf(const Review& review, const ClusterFacts& facts) {
  const kubernetes::Namespace* known = facts.FindNamespace(review.space);
  if (known != nullptr) return {*known, true};
  return {kubernetes::Namespace{.name = review.space, .labels = {}}, false};
}

// The API server's selectors found the namespace managed, perhaps before our watch did.
Verdict LeaveAlone(const Review& review, const Space& space, std::string_view reason) {
  Verdict verdict;
  if (!space.known || reason == "NotManaged") {
    verdict.absent = Absent{Absent::Kind::kNamespace, review.space};
  }
  return verdict;
}

// An object that we cannot read is refused only if it is ours, as far as its metadata tells.
template <typename Object, typename OwnershipOf>
Verdict Unreadable(const Review& review,
                   const Space& space,
                   const absl::Status& problem,
                   const OwnershipOf& ownership_of) {
  Object object;
  auto meta = kubernetes::ParseMeta(review.object);
  if (meta.ok()) object.meta = *std::move(meta);
  const kubernetes::Ownership ownership = ownership_of(object, space.value);
  if (!ownership.ours) return LeaveAlone(review, space, ownership.reason);
  return Refuse(problem);
}

// Keys that cannot be read name no class; CheckSubmission refuses what has such.
Asker AskerOf(const Review& review,
              const Space& space,
              const kubernetes::ObjectMeta& meta,
              const absl::StatusOr<kubernetes::UserKeys>& keys) {
  Asker asker{.space = space,
              .user = review.user,
              .groups = {},
              .admitted_to = {},
              .qos = keys.ok() ? keys->qos : ""};
  if (meta.Controller() == nullptr || !MakesForOthers(review.user, review.space)) {
    asker.groups = review.groups;
    return asker;
  }
  asker.controller = true;
  // A controller's groups are not those of whom it makes the object for.
  const bool stamped = kubernetes::IsFromTemplate(meta, review.user);
  // hint: the stamp of a template, which the policies keep.
  asker.user = stamped ? meta.Annotation(kubernetes::kUserAnnotation) : "";
  if (asker.user.empty()) {
    asker.user = UnknownMakerOf(review.space);
  } else {
    asker.admitted_to = meta.Annotation(kubernetes::kAdmittedToAnnotation);  // hint: as above
  }
  return asker;
}

// `serves`: it runs without an end. Empty: the object names its queue, or the namespace none.
std::string QueueOfNamespace(const Space& space,
                             bool serves,
                             const absl::StatusOr<kubernetes::UserKeys>& keys) {
  if (!keys.ok() || keys->queue) return "";
  const kubernetes::StringMap& labels = space.value.labels;  // hint: its queue's `subjects` decide
  auto found = serves ? labels.find(kubernetes::kServingQueueKey) : labels.end();
  if (found == labels.end()) found = labels.find(kubernetes::kNamespaceQueueKey);
  return found == labels.end() ? "" : found->second;
}

// REQUIRES: CheckQueue found nothing.
Making MakingOf(const Review& review,
                const Asker& asker,
                const std::string& queue,
                const ClusterFacts& facts,
                std::vector<std::string> forged) {
  Making making{
      .user = asker.user, .span = review.span, .admitted_to = {}, .forged = std::move(forged)};
  const access::Way way = WayUp(*facts.FindQueue(queue), facts.queues());
  if (access::NamesSubmitters(way)) making.admitted_to = queue;
  return making;
}

// Of a template with these metadata.
Making StampOf(Making making, const kubernetes::ObjectMeta& meta, const Space& space) {
  // Without a stamp it is charged to the same user, and an operator finds its object unchanged.
  const bool has_one = meta.annotations.contains(kubernetes::kUserAnnotation);  // hint: replaced
  if (making.user == UnknownMakerOf(space.value.name) && !has_one) making.user.clear();
  // Elsewhere it could have been made while we are away, so the policy takes no such record there.
  if (!kubernetes::IsManaged(space.value)) making.admitted_to.clear();
  return making;
}

void WarnOfStamp(const Making& making, const kubernetes::ObjectMeta& meta, Verdict* verdict) {
  const std::string& written = meta.Annotation(kubernetes::kUserAnnotation);  // hint: for a warning
  if (written.empty() || written == making.user) return;
  verdict->warnings.push_back(
      Clean(fmt::format("{}: '{}' does not apply: Fluxqueue writes there who makes the object, "
                        "'{}'",
                        kubernetes::kUserAnnotation,
                        written,
                        making.user),
            kMostRefusalBytes));
}

// A controller copies what its template says, and reads no warnings.
void WarnOfStripped(const Asker& asker, const std::vector<std::string>& keys, Verdict* verdict) {
  if (asker.controller || keys.empty()) return;
  std::vector<std::string_view> names(keys.begin(), keys.end());
  for (std::string_view& name : names) name.remove_prefix(kubernetes::kPrefix.size());
  verdict->warnings.push_back(fmt::format("annotations of Fluxqueue's ({}…), taken out: {}",
                                          kubernetes::kPrefix,
                                          fmt::join(names, ", ")));
}

Verdict Held(Patch patch,
             const Asker& asker,
             const Making& making,
             const kubernetes::ObjectMeta& meta,
             const kubernetes::PodSpec& spec) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kHold;
  verdict.patch = std::move(patch.text);
  WarnOfScheduler(spec, &verdict);
  WarnOfStamp(making, meta, &verdict);
  WarnOfStripped(asker, patch.stripped, &verdict);
  return verdict;
}

// A pod as it is asked for.
struct AskedPod {
  kubernetes::Pod pod;              // without what others have forged
  std::vector<std::string> forged;  // of our records
  Grouping grouping;
  bool is_made = false;  // by a controller, of its template
};

// What says of its places is our record of them, whatever it has.
absl::StatusOr<events::v1::JobSubmitted> SubmissionWith(const std::string& places,
                                                        kubernetes::Pod pod) {
  // hint: written here.
  pod.meta.annotations.erase(std::string(kubernetes::kPlacesAnnotation));
  if (!places.empty()) pod.meta.annotations.emplace(kubernetes::kPlacesAnnotation, places);
  return kubernetes::SubmissionOf(pod);
}

// `root`: as of DecidePod. `places`: its record of those that it has.
Verdict HoldPod(const Review& review,
                const Root* root,
                const AskedPod& asked,
                const std::string& places,
                const ClusterFacts& facts,
                const WebhookOptions& options) {
  const Space space = SpaceOf(review, facts);
  const kubernetes::Pod& pod = asked.pod;
  auto submission = SubmissionWith(places, pod);
  // hint: a user's wishes.
  const auto keys = kubernetes::ParseUserKeys(pod.meta.labels, pod.meta.annotations);
  const Asker asker = AskerOf(review, space, root != nullptr ? root->meta : pod.meta, keys);
  const bool serves = root != nullptr || asked.is_made;
  std::string queue = QueueOfNamespace(space, serves, keys);
  if (auto refusal = CheckSubmission(&queue, &submission, asker, root, facts, options)) {
    return *std::move(refusal);
  }
  Making making = MakingOf(review, asker, submission->queue(), facts, asked.forged);
  making.queue = queue;
  making.places = places;
  if (asked.grouping.group) making.group = kubernetes::FormatGroup(*asked.grouping.group);
  Verdict verdict = Held(root != nullptr ? StampPatch({root->meta, root->kind.template_, pod.meta},
                                                      StampOf(making, pod.meta, space))
                                         : HoldPatch(pod, kubernetes::ChooseMode(pod.spec), making),
                         asker,
                         making,
                         pod.meta,
                         pod.spec);
  if (!verdict.absent) verdict.absent = asked.grouping.look;
  return verdict;
}

// A pod that takes a place of another one's job: that was asked for what jobs are.
Verdict HoldInPlace(const Review& review,
                    const AskedPod& asked,
                    const std::string& place_of,
                    const ClusterFacts& facts) {
  const Space space = SpaceOf(review, facts);
  const kubernetes::Pod& pod = asked.pod;
  const Asker asker = AskerOf(review, space, pod.meta, kubernetes::UserKeys());
  const Making making{.user = asker.user,
                      .span = review.span,
                      .admitted_to = {},
                      .forged = asked.forged,
                      .place_of = place_of};
  return Held(
      HoldPatch(pod, kubernetes::ChooseMode(pod.spec), making), asker, making, pod.meta, pod.spec);
}

// `root`: the pod is what it would make; null: the pod is made.
Verdict DecidePod(const Review& review,
                  const Root* root,
                  const ClusterFacts& facts,
                  const WebhookOptions& options) {
  const Space space = SpaceOf(review, facts);
  const auto ownership_of = [&](const kubernetes::Pod& of, const kubernetes::Namespace& in) {
    const bool node =
        std::find(review.groups.begin(), review.groups.end(), kNodesGroup) != review.groups.end();
    return kubernetes::PodOwnership(of, in, {.user = review.user, .node = node});
  };
  auto pod = kubernetes::ParsePod(review.object);
  if (!pod.ok()) return Unreadable<kubernetes::Pod>(review, space, pod.status(), ownership_of);
  const kubernetes::Ownership ownership = ownership_of(*pod, space.value);
  if (!ownership.ours) return LeaveAlone(review, space, ownership.reason);
  if (kubernetes::IsOfAJob(*pod)) {
    if (kubernetes::IsJobController(review.user)) return {};
    return Refuse(
        "metadata.ownerReferences: the pods of a Job are made by the Job's controller alone; leave "
        "the owner out, and the pod is queued by itself");
  }
  // hint: counted alone.
  if (auto refusal = CheckAnnotations("metadata.annotations", pod->meta.annotations)) {
    return *std::move(refusal);
  }
  AskedPod asked;
  // hint: our records are taken out of them.
  asked.forged = TakeForged(&pod->meta.annotations);
  asked.pod = *std::move(pod);
  const kubernetes::ObjectMeta& meta = asked.pod.meta;
  if (auto refusal = CheckReferences(asked.pod.spec, review.space, facts)) {
    return *std::move(refusal);
  }
  asked.is_made = root == nullptr && kubernetes::IsFromTemplate(meta, review.user);
  asked.grouping = GroupingOf(review,
                              // hint: a user's wishes.
                              {.labels = meta.labels,
                               .annotations = meta.annotations,
                               .pod_group = asked.pod.spec.pod_group,
                               .owner = asked.is_made ? meta.Controller() : nullptr},
                              /*of_template=*/root != nullptr,
                              *options.groups);
  if (asked.grouping.answer) return *std::move(asked.grouping.answer);
  Placing placing;
  // Elsewhere the records could have been written while we are away, so the policy takes none
  // there.
  if (root == nullptr && !asked.grouping.group && kubernetes::IsManaged(space.value)) {
    placing = PlacingOf(review, asked.pod, asked.grouping.places);
  }
  if (placing.answer) return *std::move(placing.answer);
  if (!placing.place_of.empty()) return HoldInPlace(review, asked, placing.place_of, facts);
  Verdict verdict = HoldPod(review, root, asked, placing.places, facts, options);
  if (placing.places.empty() || verdict.kind != Verdict::Kind::kRefuse || verdict.absent) {
    return verdict;
  }
  // It did not ask for places itself: without them it may do.
  return HoldPod(review, root, asked, "", facts, options);
}

// `root`: as of DecidePod.
Verdict DecideJob(const Review& review,
                  const Root* root,
                  const ClusterFacts& facts,
                  const WebhookOptions& options) {
  const Space space = SpaceOf(review, facts);
  auto job = kubernetes::ParseJob(review.object);
  if (!job.ok()) {
    return Unreadable<kubernetes::Job>(review, space, job.status(), kubernetes::JobOwnership);
  }
  const kubernetes::Ownership ownership = kubernetes::JobOwnership(*job, space.value);
  if (!ownership.ours) return LeaveAlone(review, space, ownership.reason);
  // hint: counted alone.
  if (auto refusal = CheckAnnotations("metadata.annotations", job->meta.annotations)) {
    return *std::move(refusal);
  }
  // hint: as above.
  if (auto refusal =
          CheckAnnotations("spec.template.metadata.annotations", job->template_annotations)) {
    return *std::move(refusal);
  }
  // They could not be bound when their slots are given out.
  if (const std::string* gate = kubernetes::ForeignGate(job->pod)) {
    return Refuse(
        fmt::format("spec.template.spec.schedulingGates: '{}': pods of a queued Job cannot "
                    "have gates of others; remove it, or use spec.suspend",
                    *gate));
  }
  // hint: our records are taken out of them.
  std::vector<std::string> forged = TakeForged(&job->meta.annotations);
  if (auto refusal = CheckReferences(job->pod, review.space, facts)) return *std::move(refusal);
  auto submission = kubernetes::SubmissionOf(*job, facts.ContextOf(review.space));
  const auto keys = kubernetes::ParseUserKeys(*job);
  Grouping grouping = GroupingOf(review,
                                 // hint: a user's wishes.
                                 {.labels = job->template_labels,
                                  .annotations = job->template_annotations,
                                  .pod_group = job->pod.pod_group},
                                 /*of_template=*/root != nullptr,
                                 *options.groups);
  if (grouping.answer) return *std::move(grouping.answer);
  const Asker asker = AskerOf(review, space, root != nullptr ? root->meta : job->meta, keys);
  std::string queue_of_namespace = QueueOfNamespace(space, /*serves=*/false, keys);
  if (auto refusal =
          CheckSubmission(&queue_of_namespace, &submission, asker, root, facts, options)) {
    return *std::move(refusal);
  }
  JobChanges changes;
  changes.ignore_disruptions =
      keys->ignore_disruptions.value_or(false) && !job->ignores_disruptions;
  if (changes.ignore_disruptions) {
    if (auto problem = RuleProblem(*job)) return Refuse(*problem);
  }
  if (grouping.group) {
    auto refusal = CheckHasNoSize(*keys);
    if (refusal && !grouping.group->or_each) return *std::move(refusal);
    if (refusal) grouping.group.reset();
  }
  // A Job that its user suspended waits for its user; ours are known by their annotation.
  const bool users_suspend = job->suspend && !kubernetes::IsSuspendedByUs(*job);
  const kubernetes::FluxQueue& queue = *facts.FindQueue(submission->queue());
  const bool ends = queue.EndsDurations();
  changes.suspend = !grouping.group && !users_suspend &&
                    kubernetes::HoldsBySuspend(*job, options.hold_pods, ends);
  Making making = MakingOf(review, asker, submission->queue(), facts, std::move(forged));
  making.queue = queue_of_namespace;
  if (grouping.group) making.group = kubernetes::FormatGroup(*grouping.group);
  // hint: our records are taken out of them.
  const kubernetes::StringMap* pods = &job->template_annotations;
  Verdict verdict =
      Held(root != nullptr ? StampPatch({root->meta, root->kind.template_, job->meta, pods},
                                        StampOf(making, job->meta, space))
                           : HoldPatch(*job, kubernetes::ChooseMode(job->pod), making, changes),
           asker,
           making,
           job->meta,
           job->pod);
  WarnOfBackoffLimit(*job, *keys, queue, facts, &verdict);
  if (grouping.group) WarnOfDeadline(*job, &verdict);
  return verdict;
}

// Its template is judged as if its maker made one of what comes of it, and stamped with his name.
Verdict DecideRoot(const Review& review,
                   const kubernetes::Kind& kind,
                   const ClusterFacts& facts,
                   const WebhookOptions& options) {
  // A Deployment's ReplicaSet has the Deployment's stamp, and must stay as its controller made it.
  if (kubernetes::IsOfTheCluster(review.user)) return {};
  auto meta = kubernetes::ParseMeta(review.object);
  if (!meta.ok()) return Refuse(meta.status());
  const nlohmann::json object = nlohmann::json::parse(review.object, nullptr, false);
  const nlohmann::json::json_pointer path(kind.template_);
  // The API server refuses what has none.
  if (object.is_discarded() || !object.contains(path)) return {};
  const Root root{kind, *std::move(meta)};
  Review inner = review;
  inner.object = kubernetes::JsonText(object[path]);
  if (auto refusal = CheckMakesAllAtOnce(object, inner, *options.groups))
    return *std::move(refusal);
  Verdict verdict = kind.makes == "pods" ? DecidePod(inner, &root, facts, options)
                                         : DecideJob(inner, &root, facts, options);
  if (verdict.kind == Verdict::Kind::kRefuse) {
    verdict.message =
        Clean(fmt::format("{}: {}", kind.template_, verdict.message), kMostRefusalBytes);
  }
  return verdict;
}

}  // namespace

Verdict Decide(const Review& review, const ClusterFacts& facts, const WebhookOptions& options) {
  const bool pods = review.group.empty() && review.resource == "pods";
  const bool jobs = review.group == "batch" && review.resource == "jobs";
  const kubernetes::Kind* kind = kubernetes::FindKind(review.group, review.resource);
  const bool scale = IsScale(review);
  if (!scale && ((!pods && !jobs && kind == nullptr) || review.operation != "CREATE" ||
                 review.object.empty())) {
    Verdict verdict;
    verdict.warnings.push_back(
        fmt::format("Fluxqueue's webhook was asked about {} of {}{}{}; it judges CREATE of pods, "
                    "jobs.batch, and what makes such, and how that is scaled: correct its "
                    "MutatingWebhookConfiguration",
                    review.operation.empty() ? "no operation" : review.operation,
                    review.resource.empty() ? "no resource" : review.resource,
                    review.group.empty() ? "" : ".",
                    review.group));
    return verdict;
  }
  if (!kubernetes::IsDnsLabel(review.space)) {
    return Refuse("metadata.namespace: it is not the name of a namespace");
  }
  if (scale) return DecideScale(review);
  if (kind != nullptr) return DecideRoot(review, *kind, facts, options);
  return pods ? DecidePod(review, nullptr, facts, options)
              : DecideJob(review, nullptr, facts, options);
}

}  // namespace fluxqueue::admission
