#include "services/admission/adapters/watch_shard.h"

#include <algorithm>
#include <map>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/views.h"
#include "services/admission/adapters/admission_store.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

// While pages are left, the next one is compared after this part of the interval.
constexpr int kPageShare = 10;

std::optional<tracing::Context> ReviewOf(const std::string& object) {
  const auto meta = kubernetes::ParseMeta(object);
  if (!meta.ok()) return std::nullopt;
  // hint: it joins spans of a trace, and nothing else.
  return tracing::ParseTraceparent(meta->Annotation(kubernetes::kTraceparentAnnotation));
}

delivery::ObjectRef RefOf(const Sketch& sketch) {
  return {.kind = std::string(KindName(sketch.kind)),
          .space = sketch.space,
          .name = sketch.name,
          .uid = sketch.uid,
          .version = sketch.resource_version};
}

// Of one that is gone, or could not be read.
template <typename Named>
delivery::ObjectRef RefOf(const Named& named, const std::string& version) {
  return {.kind = std::string(KindName(KindOf(named.resource))),
          .space = named.space,
          .name = named.name,
          .uid = named.uid,
          .version = version};
}

}  // namespace

WatchShard::WatchShard(WatchShardOptions options, Deps deps)
    : options_(std::move(options)),
      deps_(deps),
      catalog_(options_.pool, options_.pool_partitions),
      tracker_(catalog_, options_.max_jobspec_bytes) {}

absl::Status WatchShard::Load(pqxx::transaction_base& tx) {
  AdmissionRows rows = LoadRows(tx);
  LogInfo("watch taken",
          {{"workloads", fmt::format("{}", rows.workloads.size())},
           {"queues", fmt::format("{}", rows.queues.size())}});
  catalog_.Restore(std::move(rows.pools), std::move(rows.queues), std::move(rows.windows));
  tracker_.Restore(std::move(rows.workloads));
  catalog_version_.reset();
  committed_catalog_version_.reset();
  batch_.clear();
  applied_ = 0;
  read_.clear();
  learnt_.clear();
  out_ = {};
  said_.clear();
  submitted_.clear();
  loaded_ = true;
  next_sweep_ = deps_.clock.Monotonic() + options_.sweep_interval;
  next_compare_ = deps_.clock.Monotonic() + options_.compare_interval;
  unheard_jobs_.Clear();
  unheard_jobspecs_.Clear();
  pages_ = {};
  compared_.reset();
  neighbours_.reset();
  deps_.feed.Open();
  ReportWorkloads();
  return absl::OkStatus();
}

void WatchShard::Drop() {
  deps_.feed.Close();
  loaded_ = false;
  next_groups_.reset();
  catalog_.Restore({}, {}, {});
  tracker_.Restore({});
  batch_.clear();
  applied_ = 0;
  read_.clear();
  learnt_.clear();
  out_ = {};
  deps_.metrics.Workloads(0, 0);
}

bool WatchShard::HasWork() const {
  if (!loaded_ || !deps_.facts.synced()) return false;
  if (!batch_.empty() || !learnt_.empty() || neighbours_ || deps_.feed.HasEvents()) return true;
  return catalog_version_ !=
         deps_.facts.With([](const ClusterFacts& facts) { return facts.catalog_version(); });
}

std::optional<std::chrono::steady_clock::time_point> WatchShard::WakeAt() const {
  if (!loaded_ || !deps_.facts.synced()) return std::nullopt;
  const auto next = std::min(next_sweep_, next_compare_);
  return next_groups_.has_value() ? std::min(next, *next_groups_) : next;
}

absl::Status WatchShard::Poll(delivery::Outbox& outbox) {
  if (!loaded_ || !deps_.facts.synced()) return absl::OkStatus();
  const bool rest = PollRest();
  Append(outbox);
  if (rest && deps_.quarantine.careful()) return absl::OkStatus();
  return PollEvents(outbox);
}

bool WatchShard::PollRest() {
  bool any = !learnt_.empty() || IsCompareDue();
  if (deps_.clock.Monotonic() >= next_sweep_) {
    any = true;
    next_sweep_ = deps_.clock.Monotonic() + options_.sweep_interval;
    deps_.errands.Relist();
    deps_.metrics.Swept();
    tracker_.RetryRefused(&out_);
    tracker_.LookAgain(&out_);
    catalog_.SayAgain(&out_.messages);
  }
  if (next_groups_.has_value() && deps_.clock.Monotonic() >= *next_groups_) {
    any = true;
    next_groups_ = deps_.clock.Monotonic() + options_.group_interval;
    tracker_.LookAtGroups(&out_);
  }
  for (const auto& [uid, rejected] : learnt_) tracker_.Learn(uid, rejected, &out_);
  if (neighbours_.has_value()) {
    any = true;
    SayLost(*std::exchange(neighbours_, std::nullopt));
  }
  return deps_.facts.With([this](const ClusterFacts& facts) { return ReconcileCatalog(facts); }) ||
         any;
}

absl::Status WatchShard::PollEvents(delivery::Outbox& outbox) {
  if (batch_.empty()) batch_ = deps_.feed.Take(options_.max_batch);
  return deps_.facts.With([&](const ClusterFacts& facts) -> absl::Status {
    while (applied_ < batch_.size()) {
      RETURN_IF_ERROR(Apply(batch_[applied_++], facts));
      Append(outbox);
      if (deps_.quarantine.careful() && deps_.quarantine.admitted() > 0) break;
    }
    return absl::OkStatus();
  });
}

void WatchShard::Append(delivery::Outbox& outbox) {
  for (events::v1::Envelope& message : out_.messages) {
    const int partition = catalog_.PartitionOf(message.pool());
    said_.push_back(message.event_case());
    outbox.AppendToPool(delivery::kShard, partition, std::move(message));
  }
  out_.messages.clear();
}

bool WatchShard::ReconcileCatalog(const ClusterFacts& facts) {
  if (catalog_version_ == facts.catalog_version()) return false;
  catalog_version_ = facts.catalog_version();
  std::vector<std::string> warnings;
  catalog_.Reconcile(facts.queues(), &out_.messages, &warnings);
  for (const std::string& warning : warnings) LogWarning("FluxQueue", {{"problem", warning}});
  warnings.clear();
  catalog_.ReconcileWindows(facts.windows(), &out_.messages, &warnings);
  for (const std::string& warning : warnings) LogWarning("FluxWindow", {{"problem", warning}});
  tracker_.RetryRefused(&out_);
  return true;
}

absl::Status WatchShard::Apply(const FeedEvent& event, const ClusterFacts& facts) {
  if (const auto* seen = std::get_if<kubernetes::Seen<Observation>>(&event)) {
    const Sketch& sketch = seen->object.sketch;
    ASSIGN_OR_RETURN(const bool admitted, deps_.quarantine.Admit(RefOf(sketch)));
    if (admitted) {
      Observe(seen->object, facts);
    } else {
      tracker_.LeaveOut(sketch);
    }
  } else if (const auto* gone = std::get_if<kubernetes::Gone>(&event)) {
    ASSIGN_OR_RETURN(const bool admitted, deps_.quarantine.Admit(RefOf(*gone, delivery::kDeleted)));
    if (admitted) tracker_.Gone(gone->uid, &out_);
  } else if (const auto* unread = std::get_if<kubernetes::Unread>(&event)) {
    deps_.quarantine.HoldUnread(RefOf(*unread, unread->version), unread->why);
  } else if (const auto* begins = std::get_if<ListBegins>(&event)) {
    tracker_.BeginList(begins->workload);
  } else if (const auto* synced = std::get_if<kubernetes::Synced>(&event)) {
    tracker_.EndList(KindOf(synced->resource), synced->uids, &out_);
  }
  return absl::OkStatus();
}

void WatchShard::Observe(const Observation& seen, const ClusterFacts& facts) {
  const size_t before = out_.messages.size();
  tracker_.Observe(seen, facts, &out_);
  if (!deps_.tracer.on()) return;
  for (size_t i = before; i < out_.messages.size(); ++i) {
    if (!out_.messages[i].has_job_submitted()) continue;
    const events::v1::JobSubmitted& job = out_.messages[i].job_submitted();
    if (job.after_version() != 0) continue;  // it has its span
    submitted_.push_back({job.job_id(), Millis(job.created_ms()), ReviewOf(seen.object)});
  }
}

bool WatchShard::HasRows() const {
  return !catalog_.Changes().empty() || !tracker_.Changes().empty() || !out_.looks.empty() ||
         IsCompareDue();
}

absl::Status WatchShard::Write(pqxx::transaction_base& tx) {
  WriteRows(tx, catalog_.Changes(), tracker_.Changes());
  read_.clear();
  if (IsCompareDue()) {
    // Also when it fails: what is committed with it does not wait for others' tables again.
    next_compare_ = deps_.clock.Monotonic() + options_.compare_interval;
    compared_ = CompareNeighbours(tx, pages_);
  }
  if (out_.looks.empty()) return absl::OkStatus();
  const std::map<std::string, UnplacedJob> unplaced = FindUnplaced(tx, out_.looks);
  for (const std::string& uid : out_.looks) {
    const auto found = unplaced.find(uid);
    read_.emplace_back(uid, found == unplaced.end() ? std::nullopt : std::optional(found->second));
  }
  return absl::OkStatus();
}

void WatchShard::Commit() {
  catalog_.Commit();
  tracker_.Commit();
  if (!tracker_.HasIncompleteGroups()) {
    next_groups_.reset();
  } else if (!next_groups_.has_value()) {
    next_groups_ = deps_.clock.Monotonic() + options_.group_interval;
  }
  committed_catalog_version_ = catalog_version_;
  deps_.metrics.Observed(applied_);
  deps_.metrics.Refused(out_.refusals.size());
  for (const events::v1::Envelope::EventCase type : said_) deps_.metrics.Said(type);
  for (const auto& [job_id, created, review] : submitted_) {
    deps_.tracer.JobSpan(
        job_id, 1, "submit", tracing::Time{created}, deps_.clock.Now(), {}, review);
  }
  learnt_ = std::exchange(read_, {});
  if (compared_.has_value()) neighbours_ = std::exchange(compared_, std::nullopt);
  deps_.errands.Look(std::move(out_.fetches));
  deps_.errands.Tell(std::move(out_.refusals));
  batch_.erase(batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(applied_));
  applied_ = 0;
  out_ = {};
  said_.clear();
  submitted_.clear();
  ReportWorkloads();
}

void WatchShard::Rollback() {
  catalog_.Rollback();
  tracker_.Rollback();
  catalog_version_ = committed_catalog_version_;
  applied_ = 0;
  read_.clear();
  compared_.reset();
  out_ = {};
  said_.clear();
  submitted_.clear();
}

void WatchShard::SayLost(const Neighbours& neighbours) {
  delivery::ShardLoop& loop = deps_.loop();
  // It waits for the brokers, and the lease is renewed by this thread.
  bool answers = true;
  const Unheard::Log log{.said = loop.Said(),
                         .acknowledged = loop.Acknowledged(),
                         .end = [&](int partition) -> std::optional<int64_t> {
                           if (!answers) return std::nullopt;
                           const auto end = loop.LogEnd(partition);
                           answers = end.ok();
                           return answers ? std::optional(*end) : std::nullopt;
                         }};
  std::vector<std::string> lost = unheard_jobs_.Look(neighbours.jobs, log);
  const std::vector<std::string> jobspecs = unheard_jobspecs_.Look(neighbours.jobspecs, log);
  lost.insert(lost.end(), jobspecs.begin(), jobspecs.end());
  for (const std::string& uid : lost) {
    LogWarning("a submission is lost, it is said again", {{"job", uid}});
  }
  tracker_.HandInLost(lost, &out_);
  pages_ = {.jobs = neighbours.jobs.until, .jobspecs = neighbours.jobspecs.until};
  const bool all = pages_.jobs.empty() && pages_.jobspecs.empty();
  next_compare_ = deps_.clock.Monotonic() + options_.compare_interval / (all ? 1 : kPageShare);
}

void WatchShard::ReportWorkloads() {
  deps_.metrics.Workloads(tracker_.submitted(), tracker_.refused());
}

}  // namespace fluxqueue::admission
