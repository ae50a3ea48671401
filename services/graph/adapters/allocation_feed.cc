#include "services/graph/adapters/allocation_feed.h"

#include <algorithm>
#include <utility>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph_service {
namespace {

using Event = v1::WatchAllocationsResponse;
using Clock = std::chrono::steady_clock;

// Of the time that telling took: the feed is at work for a fifth of the time at most, where nobody
// asks for more of what is held.
constexpr int kRest = 4;

using Holders = AllocationFeed::Holders;

bool Changed(const Holders& before, const Holders& now, const std::string& job_id) {
  const auto was = before.find(job_id);
  const auto is = now.find(job_id);
  if (was == before.end() || is == now.end()) return (was == before.end()) != (is == now.end());
  return was->second != is->second;
}

std::vector<std::string> ChangedJobs(const Holders& before, const Holders& now) {
  std::vector<std::string> changed;
  for (const auto& [job_id, hash] : now) {
    if (Changed(before, now, job_id)) changed.push_back(job_id);
  }
  for (const auto& [job_id, hash] : before) {
    if (!now.contains(job_id)) changed.push_back(job_id);
  }
  return changed;
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
  if (!held.empty()) FitEvent(nodes.WriteJob(held, wanted, event.mutable_allocation()), &event);
  return event;
}

}  // namespace

bool AllocationFeed::Watcher::Hears(const std::string& job_id) const {
  return synced || job_id <= told;
}

std::vector<std::string> AllocationFeed::Watcher::NextPiece(const Holders& now) const {
  std::vector<std::string> next;
  for (auto job = now.upper_bound(told); job != now.end() && next.size() < piece; ++job) {
    next.push_back(job->first);
  }
  return next;
}

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
    const bool asked = !coming.empty();
    for (auto& [pool, watched] : pools_) Tell(pool, &watched, coming[pool]);
    std::erase_if(pools_, [](const auto& entry) { return entry.second.watchers.empty(); });
    const Clock::duration took = Clock::now() - begun;
    rest = std::max<Clock::duration>(kInterval, kRest * took);
    if (!asked) continue;
    // Those who read fast, or begin anew all the time, leave half of the time to the database.
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, stop, took, [] { return false; });
  }
}

void AllocationFeed::Tell(const std::string& pool, Watched* watched, const Watches& coming) {
  std::vector<Watcher>& watchers = watched->watchers;
  std::erase_if(watchers, [](const Watcher& watcher) { return watcher.watch->ended(); });
  const auto comes = [&coming](const Watcher& watcher) {
    return std::find(coming.begin(), coming.end(), watcher.watch) != coming.end();
  };
  if (watchers.empty() && coming.empty()) return;
  const absl::StatusOr<PoolPictures::Version> version = pictures_.VersionOf(pool);
  if (version.ok() && *version == watched->version && coming.empty()) return;
  for (const auto& watch : coming) {
    const auto known = std::any_of(watchers.begin(), watchers.end(), [&](const Watcher& watcher) {
      return watcher.watch == watch;
    });
    if (!known && !watch->ended()) watchers.push_back({.watch = watch});
  }
  Holders holders;
  const auto pick = [&](pqxx::transaction_base& tx) {
    holders = matcher_rows::LoadHolders(tx, pool);
    std::vector<std::string> picked = ChangedJobs(watched->holders, holders);
    std::erase_if(picked, [&](const std::string& job_id) {
      return std::none_of(watchers.begin(), watchers.end(), [&](const Watcher& watcher) {
        return watcher.Hears(job_id);
      });
    });
    for (const Watcher& watcher : watchers) {
      if (!comes(watcher)) continue;
      const std::vector<std::string> piece = watcher.NextPiece(holders);
      picked.insert(picked.end(), piece.begin(), piece.end());
    }
    return picked;
  };
  const auto held = version.ok() ? pictures_.Find(pool, pick) : version.status();
  if (!held.ok()) {
    const bool all = !IsTransient(held.status());
    for (const Watcher& watcher : watchers) {
      if (all || comes(watcher)) watcher.watch->End(held.status());
    }
    return;
  }
  for (const auto& [job_id, placements] : held->jobs) {
    if (!Changed(watched->holders, holders, job_id)) continue;
    for (const Watcher& watcher : watchers) {
      // Of other jobs the list will tell what has become of them.
      if (!watcher.Hears(job_id)) continue;
      watcher.watch->Push(
          EventOf(KindOf(placements), job_id, placements, *held->nodes, *watcher.watch));
    }
  }
  for (Watcher& watcher : watchers) {
    if (comes(watcher)) TellPiece(pool, *held, watcher.NextPiece(holders), &watcher);
  }
  watched->version = *version;
  watched->holders = std::move(holders);
}

void AllocationFeed::TellPiece(const std::string& pool,
                               const PoolPictures::Held& held,
                               const std::vector<std::string>& piece,
                               Watcher* watcher) {
  AllocationWatch& watch = *watcher->watch;
  size_t told = 0;
  for (bool room = true; room && told < piece.size(); ++told) {
    const std::string& job_id = watcher->told = piece[told];
    const HeldByJob& placements = held.jobs.at(job_id);
    if (placements.empty()) continue;
    room = watch.PushHeld(EventOf(Event::KIND_HELD, job_id, placements, *held.nodes, watch));
  }
  watcher->synced = told == piece.size() && told < watcher->piece;
  if (told < piece.size()) watcher->piece = 2 * told;
  if (watcher->synced) {
    Event synced;
    synced.set_kind(Event::KIND_SYNCED);
    static_cast<void>(watch.PushHeld(std::move(synced)));
    return;
  }
  watch.AskForMore([this, pool, again = std::weak_ptr(watcher->watch)] {
    if (auto wanted = again.lock()) Watch(pool, std::move(wanted));
  });
}

}  // namespace fluxqueue::graph_service
