#include "services/admission/adapters/workload_feed.h"

#include <memory>
#include <optional>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"
#include "services/admission/adapters/sketch_reader.h"

namespace fluxqueue::admission {
namespace {

// Of objects' texts that wait for the loop.
constexpr size_t kMaxBytes = 8 << 20;

absl::StatusOr<std::optional<Observation>> ReadObservation(WorkloadKind kind,
                                                           std::string_view json) {
  ASSIGN_OR_RETURN(Sketch sketch, ReadSketch(kind, json));
  return Observation{std::move(sketch), std::string(json)};
}

}  // namespace

const kubernetes::Resource& ResourceOf(WorkloadKind kind) {
  return kind == WorkloadKind::kJob ? kubernetes::kJobs : kubernetes::kPods;
}

WorkloadKind KindOf(std::string_view resource) {
  return resource == kubernetes::kJobs.plural ? WorkloadKind::kJob : WorkloadKind::kPod;
}

WorkloadFeed::WorkloadFeed(kubernetes::Cluster& cluster,
                           AdmissionMetrics& metrics,
                           std::function<void()> wake)
    : cluster_(cluster), metrics_(metrics), events_("workloads", kMaxBytes) {
  events_.SetWake(std::move(wake));
}

WorkloadFeed::~WorkloadFeed() {
  Close();
}

void WorkloadFeed::Open() {
  Close();
  const std::lock_guard lock(mutex_);
  open_ = true;
  StartWatches();
}

void WorkloadFeed::Relist() {
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  informers_.Stop();
  StartWatches();
}

void WorkloadFeed::Close() {
  const std::lock_guard lock(mutex_);
  ++opening_;
  open_ = false;
  informers_.Stop();
  events_.Clear();
}

void WorkloadFeed::StartWatches() {
  kubernetes::Informers::List informers;
  for (const WorkloadKind kind : {WorkloadKind::kJob, WorkloadKind::kPod}) {
    // The end of the list before, if it waits, is not this one's.
    events_.Withdraw(kubernetes::InformerBase::SyncedKey(ResourceOf(kind).plural));
    events_.Post(std::string("begins/").append(KindName(kind)), ListBegins{kind});
    informers.push_back(std::make_unique<kubernetes::Informer<Observation>>(
        cluster_,
        kubernetes::InformerOptions{
            .watch = {.resource = ResourceOf(kind),
                      .selector = {.labels = std::string(kubernetes::kHeldLabel)}},
            .unread = [this] { metrics_.UnreadableObject(); }},
        kubernetes::Reader<Observation>{
            .parse = [kind](std::string_view json) { return ReadObservation(kind, json); }},
        events_));
  }
  informers_.Start(std::move(informers));
}

void WorkloadFeed::Answer(uint64_t opening,
                          const Fetch& fetch,
                          const absl::StatusOr<std::string>& object,
                          const std::stop_token& stop) {
  const std::string_view resource = ResourceOf(fetch.kind).plural;
  auto found = object.ok() ? ReadObservation(fetch.kind, *object) : object.status();
  const bool there = object.ok() && (!found.ok() || (*found)->sketch.uid == fetch.uid);
  // Close makes room, too.
  if (!events_.WaitForRoom(stop)) return;
  const std::lock_guard lock(mutex_);
  if (opening != opening_) return;
  if (!there) {
    events_.Post(kubernetes::InformerBase::GoneKey(fetch.uid),
                 kubernetes::Gone{resource, fetch.space, fetch.name, fetch.uid});
  } else if (found.ok()) {
    (*found)->look = fetch.look;
    // What the watch has to say of it is at least as good.
    events_.PostIfNone(fetch.uid, kubernetes::Seen<Observation>{**found}, object->size());
  }
  // What cannot be read is there, and the watch says of it that it cannot.
}

absl::Status WorkloadFeed::Health() const {
  return Annotate(informers_.Health(), "watch of held workloads");
}

}  // namespace fluxqueue::admission
