#include "services/admission/adapters/errand_runner.h"

#include <chrono>
#include <utility>

#include "libs/base/backoff.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/event.h"

namespace fluxqueue::admission {
namespace {

// For a bell.
constexpr std::chrono::hours kLongWait{1};

}  // namespace

ErrandRunner::ErrandRunner(kubernetes::Cluster& cluster,
                           WorkloadFeed& feed,
                           const Clock& clock,
                           std::string instance)
    : cluster_(cluster), feed_(feed), clock_(clock), instance_(std::move(instance)) {
  errands_.SetWake([this] { posted_.Ring(); });
}

void ErrandRunner::Look(std::vector<Fetch> fetches) {
  const uint64_t opening = feed_.opening();
  for (Fetch& fetch : fetches) {
    const std::string key = "look/" + fetch.uid;
    errands_.Post(key, {opening, std::move(fetch)});
  }
}

void ErrandRunner::Tell(std::vector<Refusal> refusals) {
  const uint64_t opening = feed_.opening();
  for (Refusal& refusal : refusals) {
    const std::string key = "tell/" + refusal.uid;
    errands_.Post(key, {opening, std::move(refusal)});
  }
}

void ErrandRunner::Relist() {
  errands_.Post("relist", {feed_.opening(), NewList{}});
}

absl::Status ErrandRunner::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    posted_.Silence();
    for (const Errand& errand : errands_.Take(1)) {
      if (errand.opening == feed_.opening()) Do(errand, stop);
    }
    if (errands_.empty()) clock_.Wait(posted_, clock_.Monotonic() + kLongWait, stop);
  }
  return absl::OkStatus();
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
  Backoff backoff(Millis(200), Millis(10'000), cluster_.NewSeed());
  while (!stop.stop_requested() && opening == feed_.opening()) {
    const auto object = cluster_.Get(ResourceOf(fetch.kind), fetch.space, fetch.name);
    if (object.ok() || absl::IsNotFound(object.status())) {
      return feed_.Answer(opening, fetch, object, stop);
    }
    LogWarning("cannot look at a workload",
               {{"job", fetch.uid},
                {"kind", KindName(fetch.kind)},
                {"namespace", fetch.space},
                {"name", fetch.name},
                {"error", Message(object.status())}});
    Pause(clock_, backoff.Next(), stop);
  }
}

void ErrandRunner::Do(const Refusal& refusal) {
  LogWarning("held workload refused",
             {{"job", refusal.uid},
              {"kind", KindName(refusal.kind)},
              {"namespace", refusal.space},
              {"name", refusal.name},
              {"why", refusal.message}});
  const auto created = cluster_.Create(
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
