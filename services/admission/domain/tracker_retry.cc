// Jobs that were rejected, and are handed in again; Jobs that wait, and have another size.
#include <string>
#include <utility>
#include <vector>

#include "libs/kubernetes/quantity.h"
#include "services/admission/domain/tracker.h"
#include "services/admission/domain/workload_messages.h"

#include "fmt/format.h"

namespace fluxqueue::admission {

using events::v1::Envelope;
using events::v1::JobSubmitted;

uint64_t Tracker::HashOf(const Wish& wish) {
  const JobSubmitted& submission = wish.submission;
  const std::optional<int64_t> duration = DurationOf(submission);
  std::string text = fmt::format("{}|{}|{}|{}|{}",
                                 submission.queue(),
                                 submission.priority(),
                                 duration ? fmt::format("{}", *duration) : "",
                                 DemandHash(wish.demand, submission.spec(), wish.topology),
                                 wish.retry);
  for (const events::v1::Dependency& dependency : submission.depends_on()) {
    text += fmt::format("|{}:{}", static_cast<int>(dependency.condition()), dependency.job());
  }
  return Hash(text);
}

void Tracker::Ask(const std::string& uid, const Wish& wish, Entry* entry, TrackerOutputs* out) {
  // A pod that is held no longer has started, and carries our answer.
  if (entry->kind != WorkloadKind::kJob && !wish.respecify) return;
  WorkloadRow& row = *entry->row;
  const uint64_t asks = HashOf(wish);
  entry->asks.reset();
  if (!row.asked || row.cancelled) row.asked = asks;
  if (row.asked == asks) return;
  entry->asks = asks;
  if (!entry->rejected) out->looks.push_back(uid);
}

void Tracker::HandInAgain(Wish wish, Entry* entry, TrackerOutputs* out) {
  WorkloadRow& row = *entry->row;
  const UnplacedJob rejected = *std::exchange(entry->rejected, {});
  if (row.cancelled) return;
  if (entry->asks) row.asked = std::exchange(entry->asks, std::nullopt);
  row.retried = rejected.version;
  // Its pods may have asked for more than it does.
  kubernetes::RaiseTo(wish.demand.requests, *row.requests);
  JobSubmitted& submission = wish.submission;
  *submission.mutable_spec() = NextSpec(wish.demand, &row);
  submission.set_after_version(rejected.version);
  submission.set_after_attempt(rejected.attempt);
  Envelope envelope = ForPool(row.pool);
  *envelope.mutable_job_submitted() = std::move(submission);
  out->messages.push_back(std::move(envelope));
}

void Tracker::LookAgain(TrackerOutputs* out) {
  for (const auto& [uid, entry] : entries_.map()) {
    if (!entry.row) continue;
    if (entry.asks || entry.resized || entry.row->retried != 0) out->looks.push_back(uid);
  }
}

void Tracker::Learn(const std::string& uid,
                    const std::optional<UnplacedJob>& unplaced,
                    TrackerOutputs* out) {
  const Entry* known = entries_.Find(uid);
  if (known == nullptr || !known->row) return;
  Entry& entry = entries_.Edit(uid);
  const bool waits = unplaced && unplaced->waits;
  const std::optional<UnplacedJob> rejected = waits ? std::nullopt : unplaced;
  WorkloadRow& row = *entry.row;
  const bool unheard = rejected && rejected->version == row.retried;
  if (!unheard) row.retried = 0;
  if (unheard || (rejected && entry.asks)) {
    entry.rejected = *rejected;
    entry.digest = 0;
    Look(uid, entry, out);
  } else if (entry.asks) {
    row.asked = std::exchange(entry.asks, std::nullopt);
  }
  if (waits && entry.resized) {
    entry.waits = true;
    entry.digest = 0;
    Look(uid, entry, out);
  }
}

void Tracker::HandInLost(const std::vector<std::string>& uids, TrackerOutputs* out) {
  std::vector<std::string> before;
  for (const auto& [uid, entry] : entries_.map()) {
    if (entry.rejected && entry.rejected->version == 0) before.push_back(uid);
  }
  for (const std::string& uid : before) entries_.Edit(uid).rejected = {};
  for (const std::string& uid : uids) {
    const Entry* known = entries_.Find(uid);
    if (known == nullptr || !known->row || known->row->cancelled) continue;
    Entry& entry = entries_.Edit(uid);
    entry.rejected = UnplacedJob{};
    entry.digest = 0;
    Look(uid, entry, out);
  }
}

}  // namespace fluxqueue::admission
