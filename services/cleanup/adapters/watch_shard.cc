#include "services/cleanup/adapters/watch_shard.h"

#include <algorithm>
#include <iterator>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "services/cleanup/adapters/cleanup_store.h"

namespace fluxqueue::cleanup {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

const char* KindOf(std::string_view resource) {
  return resource == kubernetes::kPods.plural ? "Pod" : "Job";
}

}  // namespace

WatchShard::WatchShard(const CleanupConfig& config,
                       kubernetes::Cluster& cluster,
                       std::unique_ptr<postgres::Store> store,
                       CleanupMetrics& metrics,
                       const Clock& clock,
                       tracing::Tracer& tracer,
                       delivery::Quarantine& quarantine,
                       std::function<void()> wake)
    : config_(config),
      cluster_(cluster),
      metrics_(metrics),
      tracer_(tracer),
      quarantine_(quarantine),
      clock_(clock),
      store_(std::move(store)),
      directory_(*store_) {
  inbox_.SetWake(std::move(wake));
}

WatchShard::~WatchShard() {
  Drop();
}

Millis WatchShard::Now() const {
  return std::chrono::duration_cast<Millis>(clock_.Monotonic().time_since_epoch());
}

absl::Status WatchShard::Load(pqxx::transaction_base& tx) {
  Drop();
  observer_ = std::make_unique<Observer>(config_.node_lost_grace);
  for (const auto& [pool, node] : LoadGraphNodes(tx)) observer_->Remember(pool, node);
  for (const LiveJob& job : LoadLiveJobs(tx)) {
    if (job.running) observer_->RememberStarted(job.job_id, job.attempt);
  }
  StartWatches();
  return absl::OkStatus();
}

void WatchShard::StartWatches() {
  kubernetes::Informers::List informers;
  const auto add = [&]<typename T>(const kubernetes::Resource& resource,
                                   std::string_view labels,
                                   absl::StatusOr<T> (*parse)(std::string_view)) {
    informers.push_back(std::make_unique<kubernetes::Informer<T>>(
        cluster_,
        kubernetes::InformerOptions{
            .watch = {.resource = resource, .selector = {.labels = std::string(labels)}},
            .unread = [this] { metrics_.BadObject(); }},
        kubernetes::Reader<T>{.parse = parse},
        inbox_));
  };
  add(kubernetes::kNodes, "", kubernetes::ParseNode);
  add(kubernetes::kPods, "", kubernetes::ParsePod);
  add(kubernetes::kJobs, kubernetes::kHeldLabel, kubernetes::ParseJob);
  informers_.Start(std::move(informers));
}

void WatchShard::Drop() {
  informers_.Stop();  // after this nothing is posted by them
  inbox_.Clear();
  taken_.clear();
  handled_ = 0;
  std::lock_guard lock(mutex_);
  suspects_.reset();
  complete_ = false;
  synced_.clear();
  observer_.reset();
}

bool WatchShard::HasWork() const {
  if (observer_ == nullptr) return false;
  return observer_->HasNews() || !taken_.empty() || !inbox_.empty();
}

std::optional<std::chrono::steady_clock::time_point> WatchShard::WakeAt() const {
  if (observer_ == nullptr || !observer_->synced()) return std::nullopt;
  const std::optional<Millis> deadline = observer_->NextDeadline();
  if (!deadline.has_value()) return std::nullopt;
  return std::chrono::steady_clock::time_point(*deadline);
}

absl::StatusOr<Proofs> WatchShard::FindProofsFor(std::span<const Item> items) {
  std::vector<Hint> hints;
  const auto add = [&hints](std::vector<Hint> more) {
    std::ranges::move(more, std::back_inserter(hints));
  };
  for (const Item& item : items) {
    if (const auto* pod = std::get_if<Pod>(&item)) add(observer_->NeedsProof(pod->object));
    if (std::holds_alternative<std::vector<LiveJob>>(item)) add(observer_->UnprovenPods());
  }
  return FindProofs(*store_, hints);
}

void WatchShard::Apply(const Item& item, const Proofs& proofs) {
  std::visit(Overloaded{[&](const Node& node) { observer_->ObserveNode(node.object, Now()); },
                        [&](const Pod& pod) {
                          const auto proof = proofs.find(pod.object.meta.uid);
                          observer_->ObservePod(
                              pod.object,
                              proof == proofs.end() ? std::nullopt : std::optional(proof->second));
                        },
                        [&](const Job& job) { observer_->ObserveJob(job.object); },
                        [&](const kubernetes::Gone& gone) { Forget(gone); },
                        [&](const kubernetes::Synced& synced) {
                          synced_.insert(synced.resource);
                          if (synced_.size() == 3) observer_->Synced();
                        },
                        [](const kubernetes::Unread&) {},  // a node: it stays as it was
                        [&](const std::vector<HeardNode>& nodes) {
                          if (!observer_->synced()) return;
                          const size_t again = observer_->HearNodes(nodes);
                          if (again == 0) return;
                          LogWarning("nodes were not heard, they are said again",
                                     {{"nodes", fmt::format("{}", again)}});
                          metrics_.Drift("node_not_heard");
                        },
                        [&](const std::vector<LiveJob>& live) {
                          for (const auto& [pod_uid, proof] : proofs)
                            observer_->Prove(pod_uid, proof);
                          if (!observer_->synced()) return;
                          SayAgain(live);
                          Suspects suspects = Compare(live, *observer_);
                          std::lock_guard lock(mutex_);
                          suspects_ = std::move(suspects);
                        },
                        [&](const ConfirmedGone& gone) {
                          metrics_.Drift("workload_gone");
                          observer_->ConfirmGone(gone.job_id);
                        },
                        [&](const ConfirmedOrphan& orphan) {
                          if (observer_->Disown(orphan.uid)) metrics_.Drift("orphan_pod");
                        }},
             item);
}

std::optional<delivery::ObjectRef> WatchShard::RefOf(const Item& item) {
  const auto of = [](const char* kind, const kubernetes::ObjectMeta& meta) {
    return delivery::ObjectRef{
        kind, meta.namespace_name, meta.name, meta.uid, meta.resource_version};
  };
  if (const auto* pod = std::get_if<Pod>(&item)) return of("Pod", pod->object.meta);
  if (const auto* job = std::get_if<Job>(&item)) return of("Job", job->object.meta);
  if (const auto* unread = std::get_if<kubernetes::Unread>(&item)) {
    if (unread->resource == kubernetes::kNodes.plural) return std::nullopt;
    return delivery::ObjectRef{
        KindOf(unread->resource), unread->space, unread->name, unread->uid, unread->version};
  }
  const auto* gone = std::get_if<kubernetes::Gone>(&item);
  if (gone == nullptr || gone->resource == kubernetes::kNodes.plural) return std::nullopt;
  return delivery::ObjectRef{
      KindOf(gone->resource), gone->space, gone->name, gone->uid, delivery::kDeleted};
}

void WatchShard::SayAgain(const std::vector<LiveJob>& live) {
  for (const LiveJob& job : live) {
    if (observer_->SayEndAgain(job.job_id)) {
      LogWarning("end was not heard, it is said again", {{"job", job.job_id}});
      metrics_.Drift("end_not_heard");
    } else if (job.holding && !job.running && observer_->SayStartAgain(job.job_id, job.attempt)) {
      LogInfo("start was not heard, it is said again", {{"job", job.job_id}});
      metrics_.Drift("start_not_heard");
    }
  }
}

void WatchShard::Forget(const kubernetes::Gone& gone) {
  if (gone.resource == kubernetes::kNodes.plural) observer_->NodeGone(gone.name, gone.uid);
  if (gone.resource == kubernetes::kPods.plural) observer_->PodGone(gone.uid);
  if (gone.resource == kubernetes::kJobs.plural) observer_->JobGone(gone.uid);
}

void WatchShard::LeaveOut(const Item& item) {
  if (const auto* job = std::get_if<Job>(&item)) observer_->LeaveOut(job->object);
  const auto* seen = std::get_if<Pod>(&item);
  if (seen == nullptr) return;
  const kubernetes::Pod& pod = seen->object;
  try {
    observer_->LeaveOut(pod);
  } catch (const std::exception& error) {
    LogWarning("the size of a pod in quarantine cannot be read: its node looks freer than it is",
               {{"name", pod.meta.name}, {"node", pod.spec.node_name}, {"error", error.what()}});
  }
}

absl::StatusOr<bool> WatchShard::Admit(const Item& item) {
  const auto object = RefOf(item);
  if (!object.has_value()) return true;
  const auto* unread = std::get_if<kubernetes::Unread>(&item);
  if (unread == nullptr) return quarantine_.Admit(*object);
  quarantine_.HoldUnread(*object, unread->why);
  return false;
}

absl::Status WatchShard::Handle(std::span<const Item> items) {
  const bool careful = quarantine_.careful();
  Proofs proofs;
  if (!careful) {
    absl::StatusOr<Proofs> found = FindProofsFor(items);
    if (IsPoison(found.status())) {
      quarantine_.OneByOne(items.size());
      return Unavailable(
          "one of {} objects cannot be looked up: {}", items.size(), Message(found.status()));
    }
    ASSIGN_OR_RETURN(proofs, std::move(found));
  }
  for (const Item& item : items) {
    ASSIGN_OR_RETURN(const bool admitted, Admit(item));
    if (!admitted) {
      LeaveOut(item);
      continue;
    }
    if (careful) {
      ASSIGN_OR_RETURN(proofs, FindProofsFor({&item, 1}));
    }
    Apply(item, proofs);
    // So that what is no object is not put down to the object before it. Nor is what Collect says,
    // which comes of the whole picture.
    RETURN_IF_ERROR(quarantine_.Handled());
  }
  return absl::OkStatus();
}

absl::Status WatchShard::Poll(delivery::Outbox& outbox) {
  if (taken_.empty()) taken_ = inbox_.Take(kMostTaken);
  std::span<const Item> items = std::span(taken_).subspan(handled_);
  if (quarantine_.careful() && items.size() > 1) items = items.first(1);
  RETURN_IF_ERROR(Handle(items));
  handled_ += items.size();
  if (handled_ == taken_.size()) {
    taken_.clear();
    handled_ = 0;
  }
  if (observer_->synced()) {
    std::lock_guard lock(mutex_);
    complete_ = true;
  }
  return Say(observer_->Collect(Now()), outbox);
}

absl::Status WatchShard::Say(const Said& said, delivery::Outbox& outbox) {
  std::vector<std::string> job_ids;
  for (const auto& [job_id, fact] : said.jobs) job_ids.push_back(job_id);
  RETURN_IF_ERROR(directory_.Find(job_ids));
  const auto append = [&](events::v1::Envelope fact) -> absl::Status {
    ASSIGN_OR_RETURN(const int partition, directory_.PartitionOf(fact.pool()));
    said_.push_back(fact);
    outbox.AppendToPool(delivery::kShard, partition, std::move(fact));
    return absl::OkStatus();
  };
  for (const events::v1::Envelope& node : said.nodes) RETURN_IF_ERROR(append(node));
  for (const auto& [job_id, job] : said.jobs) {
    const std::optional<std::string> pool = directory_.PoolOf(job_id);
    if (!pool.has_value()) {
      metrics_.UnknownJob();
      continue;
    }
    events::v1::Envelope fact = job;
    fact.set_pool(*pool);
    RETURN_IF_ERROR(append(std::move(fact)));
    if (job.has_job_ended()) directory_.Forget(job_id);
  }
  return absl::OkStatus();
}

void WatchShard::Commit() {
  if (observer_ == nullptr) return;
  observer_->Commit();
  metrics_.View(observer_->jobs(), observer_->nodes());
  for (const events::v1::Envelope& fact : said_) {
    metrics_.Fact(fact);
    if (!fact.has_job_started()) continue;
    const events::v1::JobStarted& started = fact.job_started();
    const tracing::Time begin{Millis(started.started_ms())};
    tracer_.JobSpan(started.job_id(), started.attempt(), "start", begin, clock_.Now());
  }
  said_.clear();
}

void WatchShard::Rollback() {
  if (observer_ != nullptr) observer_->Rollback();
  said_.clear();
}

absl::Status WatchShard::Ready() const {
  if (informers_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(informers_.Health());
  std::lock_guard lock(mutex_);
  if (!complete_) return Unavailable("nodes, pods and Jobs are being listed");
  return absl::OkStatus();
}

void WatchShard::PostNodes(std::vector<HeardNode> nodes) {
  inbox_.Post("nodes", std::move(nodes));
}
void WatchShard::PostLiveJobs(std::vector<LiveJob> live) {
  inbox_.Post("live", std::move(live));
}
void WatchShard::PostGone(std::string job_id) {
  const std::string key = "confirmed/" + job_id;
  inbox_.Post(key, ConfirmedGone{std::move(job_id)});
}
void WatchShard::PostOrphan(std::string pod_uid) {
  const std::string key = "orphan/" + pod_uid;
  inbox_.Post(key, ConfirmedOrphan{std::move(pod_uid)});
}

std::optional<Suspects> WatchShard::TakeSuspects() {
  std::lock_guard lock(mutex_);
  return std::exchange(suspects_, std::nullopt);
}

}  // namespace fluxqueue::cleanup
