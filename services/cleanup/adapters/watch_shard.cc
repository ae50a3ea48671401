#include "services/cleanup/adapters/watch_shard.h"

#include <algorithm>
#include <iterator>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::cleanup {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace

WatchShard::WatchShard(const CleanupConfig& config,
                       kubernetes::Client& client,
                       postgres::Options postgres,
                       CleanupMetrics& metrics,
                       const Clock& clock,
                       tracing::Tracer& tracer,
                       delivery::Quarantine& quarantine,
                       std::function<void()> wake)
    : config_(config),
      client_(client),
      metrics_(metrics),
      tracer_(tracer),
      quarantine_(quarantine),
      clock_(clock),
      connection_(std::move(postgres)),
      directory_(connection_) {
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
  const auto start = [this](Kind kind, const kubernetes::Resource& resource, std::string labels) {
    return std::make_unique<kubernetes::Watcher>(
        client_,
        kubernetes::WatcherOptions{.resource = resource, .selector = {.labels = std::move(labels)}},
        [this, kind](const kubernetes::WatchEvent& event) { OnEvent(kind, event); });
  };
  std::vector<std::unique_ptr<kubernetes::Watcher>> watchers;
  watchers.push_back(start(kNodes, kubernetes::kNodes, ""));
  watchers.push_back(start(kPods, kubernetes::kPods, ""));
  watchers.push_back(start(kJobs, kubernetes::kJobs, std::string(kubernetes::kHeldLabel)));
  std::lock_guard lock(mutex_);
  watchers_ = std::move(watchers);
}

void WatchShard::Drop() {
  std::vector<std::unique_ptr<kubernetes::Watcher>> watchers;
  {
    std::lock_guard lock(mutex_);
    watchers.swap(watchers_);
  }
  watchers.clear();  // joins their threads: after this nothing is posted by them
  inbox_.Clear();
  taken_.clear();
  handled_ = 0;
  std::lock_guard lock(mutex_);
  suspects_.reset();
  complete_ = false;
  synced_.clear();
  observer_.reset();
}

// On the watcher's thread: what is large is read here, once, and what cannot be read is left out.
void WatchShard::OnEvent(Kind kind, const kubernetes::WatchEvent& event) {
  using EventKind = kubernetes::WatchEvent::Kind;
  if (event.kind == EventKind::kSynced)
    return inbox_.Post(fmt::format("synced/{}", int{kind}), Synced{kind});
  if (event.kind == EventKind::kDeleted) {
    // Beside what was told of it last: how it ended counts, too.
    return inbox_.Post(
        fmt::format("gone/{}", event.uid),
        Gone{kind, std::string(event.space), std::string(event.name), std::string(event.uid)});
  }
  const auto post = [&](auto parsed) {
    if (parsed.ok()) return inbox_.Post(std::string(event.uid), std::move(*parsed));
    metrics_.BadObject();
    LogWarning("object not understood",
               {{"name", event.name}, {"error", Message(parsed.status())}});
  };
  switch (kind) {
    case kNodes:
      return post(kubernetes::ParseNode(event.object));
    case kPods:
      return post(kubernetes::ParsePod(event.object));
    case kJobs:
      return post(kubernetes::ParseJob(event.object));
  }
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
    if (const auto* pod = std::get_if<kubernetes::Pod>(&item)) add(observer_->NeedsProof(*pod));
    if (std::holds_alternative<std::vector<LiveJob>>(item)) add(observer_->UnprovenPods());
  }
  return FindProofs(connection_, hints);
}

void WatchShard::Apply(const Item& item, const Proofs& proofs) {
  std::visit(
      Overloaded{[&](const kubernetes::Node& node) { observer_->ObserveNode(node, Now()); },
                 [&](const kubernetes::Pod& pod) {
                   const auto proof = proofs.find(pod.meta.uid);
                   observer_->ObservePod(
                       pod, proof == proofs.end() ? std::nullopt : std::optional(proof->second));
                 },
                 [&](const kubernetes::Job& job) { observer_->ObserveJob(job); },
                 [&](const Gone& gone) {
                   if (gone.kind == kNodes) observer_->NodeGone(gone.name, gone.uid);
                   if (gone.kind == kPods) observer_->PodGone(gone.uid);
                   if (gone.kind == kJobs) observer_->JobGone(gone.uid);
                 },
                 [&](const Synced& synced) {
                   synced_.insert(synced.kind);
                   if (synced_.size() == 3) observer_->Synced();
                 },
                 [&](const std::vector<LiveJob>& live) {
                   for (const auto& [pod_uid, proof] : proofs) observer_->Prove(pod_uid, proof);
                   if (!observer_->synced()) return;
                   for (const LiveJob& job : live) {
                     if (!observer_->SayEndAgain(job.job_id)) continue;
                     LogWarning("end was not heard, it is said again", {{"job", job.job_id}});
                     metrics_.Drift("end_not_heard");
                   }
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
  if (const auto* pod = std::get_if<kubernetes::Pod>(&item)) return of("Pod", pod->meta);
  if (const auto* job = std::get_if<kubernetes::Job>(&item)) return of("Job", job->meta);
  const auto* gone = std::get_if<Gone>(&item);
  if (gone == nullptr || gone->kind == kNodes) return std::nullopt;
  return delivery::ObjectRef{
      gone->kind == kPods ? "Pod" : "Job", gone->space, gone->name, gone->uid, delivery::kDeleted};
}

void WatchShard::LeaveOut(const Item& item) {
  if (const auto* job = std::get_if<kubernetes::Job>(&item)) observer_->LeaveOut(*job);
  const auto* pod = std::get_if<kubernetes::Pod>(&item);
  if (pod == nullptr) return;
  try {
    observer_->LeaveOut(*pod);
  } catch (const std::exception& error) {
    LogWarning("the size of a pod in quarantine cannot be read: its node looks freer than it is",
               {{"name", pod->meta.name}, {"node", pod->spec.node_name}, {"error", error.what()}});
  }
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
    bool admitted = true;
    if (const auto object = RefOf(item)) {
      ASSIGN_OR_RETURN(admitted, quarantine_.Admit(*object));
    }
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
  if (taken_.empty()) taken_ = inbox_.Take();
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
  std::lock_guard lock(mutex_);
  if (watchers_.empty()) return absl::OkStatus();
  for (const auto& watcher : watchers_) RETURN_IF_ERROR(watcher->Health());
  if (!complete_) return Unavailable("nodes, pods and Jobs are being listed");
  return absl::OkStatus();
}

void WatchShard::PostLiveJobs(std::vector<LiveJob> live) {
  inbox_.Post("live", std::move(live));
}
void WatchShard::PostGone(std::string job_id) {
  inbox_.Post(ConfirmedGone{std::move(job_id)});
}
void WatchShard::PostOrphan(std::string pod_uid) {
  inbox_.Post(ConfirmedOrphan{std::move(pod_uid)});
}

std::optional<Suspects> WatchShard::TakeSuspects() {
  std::lock_guard lock(mutex_);
  return std::exchange(suspects_, std::nullopt);
}

}  // namespace fluxqueue::cleanup
