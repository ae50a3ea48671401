#include "services/admission/adapters/errand_runner.h"

#include <utility>

#include "libs/base/backoff.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/event.h"
#include "services/admission/adapters/sketch_reader.h"

namespace fluxqueue::admission {
namespace {

const kubernetes::Resource& ResourceOf(WorkloadKind kind) {
  return kind == WorkloadKind::kJob ? kubernetes::kJobs : kubernetes::kPods;
}

}  // namespace

ErrandRunner::ErrandRunner(kubernetes::Client& client,
                           WorkloadFeed& feed,
                           const Clock& clock,
                           std::string instance)
    : client_(client), feed_(feed), clock_(clock), instance_(std::move(instance)) {}

void ErrandRunner::Look(std::vector<Fetch> fetches) {
  const uint64_t opening = feed_.opening();
  for (Fetch& fetch : fetches) Add({opening, std::move(fetch)});
}

void ErrandRunner::Tell(std::vector<Refusal> refusals) {
  const uint64_t opening = feed_.opening();
  for (Refusal& refusal : refusals) Add({opening, std::move(refusal)});
}

void ErrandRunner::Relist() {
  Add({feed_.opening(), NewList{}});
}

void ErrandRunner::Add(Errand errand) {
  {
    const std::lock_guard lock(mutex_);
    const auto* fetch = std::get_if<Fetch>(&errand.what);
    if (fetch != nullptr && !waiting_.insert({errand.opening, fetch->uid}).second) return;
    errands_.push_back(std::move(errand));
  }
  changed_.notify_one();
}

absl::Status ErrandRunner::Run(std::stop_token stop) {
  for (;;) {
    Errand errand;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !errands_.empty(); })) {
        return absl::OkStatus();
      }
      errand = std::move(errands_.front());
      errands_.pop_front();
      if (const auto* fetch = std::get_if<Fetch>(&errand.what)) {
        waiting_.erase({errand.opening, fetch->uid});
      }
    }
    if (errand.opening == feed_.opening()) Do(errand, stop);
  }
}

void ErrandRunner::Do(const Errand& errand, const std::stop_token& stop) {
  if (const auto* fetch = std::get_if<Fetch>(&errand.what)) {
    Do(errand.opening, *fetch, stop);
  } else if (const auto* refusal = std::get_if<Refusal>(&errand.what)) {
    Do(*refusal);
  } else {
    feed_.Relist();
  }
}

void ErrandRunner::Do(uint64_t opening, const Fetch& fetch, const std::stop_token& stop) {
  Backoff backoff(Millis(200), Millis(10'000));
  FeedEvent answer;
  answer.workload = fetch.kind;
  while (!stop.stop_requested() && opening == feed_.opening()) {
    const auto object = client_.Get(ResourceOf(fetch.kind), fetch.space, fetch.name);
    if (object.ok()) {
      absl::StatusOr<Sketch> sketch = ReadSketch(fetch.kind, *object);
      if (sketch.ok() && sketch->uid == fetch.uid) {
        answer.seen = {*std::move(sketch), *object};
      } else {
        answer.kind = FeedEvent::Kind::kGone;
      }
    } else if (absl::IsNotFound(object.status())) {
      answer.kind = FeedEvent::Kind::kGone;
    } else {
      LogWarning("cannot look at a workload",
                 {{"job", fetch.uid},
                  {"kind", KindName(fetch.kind)},
                  {"namespace", fetch.space},
                  {"name", fetch.name},
                  {"error", Message(object.status())}});
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, backoff.Next(), [] { return false; });
      continue;
    }
    if (answer.kind == FeedEvent::Kind::kGone) answer.seen.sketch.uid = fetch.uid;
    feed_.Push(opening, std::move(answer));
    return;
  }
}

void ErrandRunner::Do(const Refusal& refusal) {
  LogWarning("held workload refused",
             {{"job", refusal.uid},
              {"kind", KindName(refusal.kind)},
              {"namespace", refusal.space},
              {"name", refusal.name},
              {"why", refusal.message}});
  const auto created = client_.Create(
      kubernetes::kEvents,
      refusal.space,
      kubernetes::EventText({.component = "admission",
                             .instance = instance_,
                             .type = "Warning",
                             .reason = "Refused",
                             .action = "Submit",
                             .note = refusal.message,
                             .regarding = {refusal.kind == WorkloadKind::kJob ? "batch/v1" : "v1",
                                           std::string(KindName(refusal.kind)),
                                           refusal.space,
                                           refusal.name,
                                           refusal.uid},
                             .at = clock_.Now()}));
  if (created.ok()) return;
  LogWarning("Event not written", {{"job", refusal.uid}, {"error", Message(created.status())}});
}

}  // namespace fluxqueue::admission
