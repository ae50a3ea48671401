#include "services/graph/adapters/allocation_feed.h"

#include <algorithm>
#include <utility>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph_service {
namespace {

using Event = v1::WatchAllocationsResponse;
using Clock = std::chrono::steady_clock;

// Of the time that telling took: the feed is at work for a fifth of the time at most.
constexpr int kRest = 4;

using Holders = std::map<std::string, std::string>;

bool Changed(const Holders& before, const Holders& now, const std::string& job_id) {
  const auto was = before.find(job_id);
  const auto is = now.find(job_id);
  if (was == before.end() || is == now.end()) return (was == before.end()) != (is == now.end());
  return was->second != is->second;
}

// Those that have changed, or `all`.
std::vector<std::string> Picked(const Holders& before, const Holders& now, bool all) {
  std::vector<std::string> picked;
  for (const auto& [job_id, hash] : now) {
    if (all || Changed(before, now, job_id)) picked.push_back(job_id);
  }
  for (const auto& [job_id, hash] : before) {
    if (!now.contains(job_id)) picked.push_back(job_id);
  }
  return picked;
}

Event EventOf(Event::Kind kind,
              const std::string& job_id,
              const HeldByJob& held,
              const PoolView& nodes,
              const AllocationWatch& watch) {
  Event event;
  event.set_kind(kind);
  event.set_job(NumberOf(job_id));
  event.set_job_id(job_id);
  const Wanted wanted{watch.request().format(), watch.request().nodes()};
  if (!held.empty()) nodes.WriteJob(held, wanted, event.mutable_allocation());
  return event;
}

void TellAll(const PoolPictures::Held& held, AllocationWatch* watch) {
  for (const auto& [job_id, placements] : held.jobs) {
    if (placements.empty()) continue;
    watch->PushHeld(EventOf(Event::KIND_HELD, job_id, placements, *held.nodes, *watch));
  }
  Event synced;
  synced.set_kind(Event::KIND_SYNCED);
  watch->PushHeld(std::move(synced));
}

}  // namespace

AllocationFeed::AllocationFeed(PoolPictures& pictures)
    : pictures_(pictures), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void AllocationFeed::Watch(const std::string& pool, std::shared_ptr<AllocationWatch> watch) {
  const std::lock_guard lock(mutex_);
  coming_[pool].push_back(std::move(watch));
  came_.notify_all();
}

void AllocationFeed::Run(const std::stop_token& stop) {
  Clock::duration rest{};
  while (!stop.stop_requested()) {
    std::map<std::string, Watches> coming;
    {
      std::unique_lock lock(mutex_);
      const auto came = [this] { return !coming_.empty(); };
      if (pools_.empty()) {
        came_.wait(lock, stop, came);
      } else {
        came_.wait_for(lock, stop, rest, came);
      }
      coming.swap(coming_);
    }
    for (const auto& [pool, watches] : coming) pools_.try_emplace(pool);
    const Clock::time_point begun = Clock::now();
    for (auto& [pool, watched] : pools_) Tell(pool, &watched, std::move(coming[pool]));
    std::erase_if(pools_, [](const auto& entry) { return entry.second.watches.empty(); });
    rest = std::max<Clock::duration>(kInterval, kRest * (Clock::now() - begun));
  }
}

void AllocationFeed::Tell(const std::string& pool, Watched* watched, Watches coming) {
  std::erase_if(watched->watches, [](const auto& watch) { return watch->ended(); });
  if (watched->watches.empty() && coming.empty()) return;
  const absl::StatusOr<PoolPictures::Version> version = pictures_.VersionOf(pool);
  if (version.ok() && *version == watched->version && coming.empty()) return;
  Holders holders;
  const auto pick = [&](pqxx::transaction_base& tx) {
    holders = matcher_rows::LoadHolders(tx, pool);
    return Picked(watched->holders, holders, !coming.empty());
  };
  const auto held = version.ok() ? pictures_.Find(pool, pick) : version.status();
  if (!held.ok()) {
    for (const auto& watch : coming) watch->End(held.status());
    if (IsTransient(held.status())) return;
    for (const auto& watch : watched->watches) watch->End(held.status());
    return;
  }
  for (const auto& [job_id, placements] : held->jobs) {
    if (!Changed(watched->holders, holders, job_id)) continue;
    for (const auto& watch : watched->watches) {
      watch->Push(EventOf(KindOf(placements), job_id, placements, *held->nodes, *watch));
    }
  }
  for (auto& watch : coming) {
    TellAll(*held, watch.get());
    watched->watches.push_back(std::move(watch));
  }
  watched->version = *version;
  watched->holders = std::move(holders);
}

}  // namespace fluxqueue::graph_service
