// A rule that plans anew: whatever of the last plan is kept, all answers are those of a plan that
// is made from nothing in each cycle, in the order of the line.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::Outcome;

constexpr int64_t kCores = 16;
constexpr uint32_t kReservations = 3;

struct PlannedJob {
  std::string id;
  int64_t cores = 0;
  int64_t duration_s = 0;
  bool may_reserve = true;
};

struct Said {
  Outcome::Kind kind = Outcome::KIND_BUSY;
  int64_t at_s = 0;

  friend bool operator==(const Said&, const Said&) = default;
};
std::ostream& operator<<(std::ostream& out, const Said& said) {
  return out << Outcome::Kind_Name(said.kind) << " " << said.at_s;
}

// One node, and all that is known of it is who has how many cores from when to when.
class NaivePlan {
 public:
  std::vector<Said> Cycle(int64_t now_s, const std::vector<PlannedJob>& line) {
    held_ = running_;
    uint32_t reserved = 0;
    std::vector<Said> said;
    for (const PlannedJob& job : line) {
      const int64_t at_s = FirstStart(now_s, job);
      if (at_s == now_s) {
        held_[job.id] = running_[job.id] = {job.cores, at_s, at_s + job.duration_s};
        said.push_back({Outcome::KIND_ALLOCATED, at_s});
      } else if (job.may_reserve && reserved < kReservations) {
        ++reserved;
        held_[job.id] = {job.cores, at_s, at_s + job.duration_s};
        said.push_back({Outcome::KIND_RESERVED, at_s});
      } else {
        said.push_back({});
      }
    }
    return said;
  }
  void End(const std::string& job) { running_.erase(job); }
  std::vector<std::string> Running(int64_t ended_by_s) const {
    std::vector<std::string> ids;
    for (const auto& [id, hold] : running_) {
      if (hold.to_s <= ended_by_s) ids.push_back(id);
    }
    return ids;
  }

 private:
  struct Hold {
    int64_t cores = 0;
    int64_t from_s = 0;
    int64_t to_s = 0;
  };

  int64_t FirstStart(int64_t now_s, const PlannedJob& job) const {
    std::vector<int64_t> times = {now_s};
    for (const auto& [id, hold] : held_) {
      if (hold.to_s > now_s) times.push_back(hold.to_s);
    }
    std::sort(times.begin(), times.end());
    return *std::find_if(times.begin(), times.end(), [&](int64_t at_s) { return Fits(at_s, job); });
  }
  bool Fits(int64_t at_s, const PlannedJob& job) const {
    for (int64_t second = at_s; second < at_s + job.duration_s; ++second) {
      int64_t used = job.cores;
      for (const auto& [id, hold] : held_) {
        used += hold.from_s <= second && second < hold.to_s ? hold.cores : 0;
      }
      if (used > kCores) return false;
    }
    return true;
  }

  std::map<std::string, Hold> running_;
  std::map<std::string, Hold> held_;  // with what this cycle has reserved
};

class PlanPropertyTest : public MatcherCoreTest {};

TEST_F(PlanPropertyTest, WhatIsKeptIsWhatWouldBePlannedAnew) {
  const auto roll = [](int64_t sides) { return *rc::gen::inRange<int64_t>(0, sides); };
  EXPECT_TRUE(rc::check([&] {
    MatcherCore core("default");
    NaivePlan naive;
    Tables tables;
    std::vector<PlannedJob> line;
    int64_t now_s = 100;
    const auto feed = [&](const Envelope& message) {
      std::vector<Envelope> said;
      RC_ASSERT(core.Handle(message, At(now_s), &said).ok());
      return said;
    };
    const auto end = [&](const std::string& job) {
      naive.End(job);
      feed(Release(job, {}, /*ended=*/true));
    };
    feed(Upserted(MakeNode("a", kCores * 1000)));
    feed(Synced());
    const int64_t cycles = roll(40);
    for (int64_t cycle = 1; cycle <= cycles; ++cycle) {
      now_s += roll(4);
      for (const std::string& job : naive.Running(now_s)) end(job);
      if (const auto early = naive.Running(now_s + 100); !early.empty() && roll(8) == 0) {
        end(early[static_cast<size_t>(roll(static_cast<int64_t>(early.size())))]);
      }
      for (int64_t arrivals = roll(3); arrivals > 0; --arrivals) {
        line.push_back({"job-" + std::to_string(cycle) + "-" + std::to_string(arrivals),
                        1 + roll(kCores),
                        1 + roll(20),
                        roll(5) != 0});
        feed(Submitted(line.back().id, 1, line.back().cores * 1000));
        if (roll(4) == 0) std::rotate(line.begin(), line.end() - 1, line.end());
      }
      if (line.size() > 1 && roll(6) == 0) {
        std::swap(line[static_cast<size_t>(roll(static_cast<int64_t>(line.size())))], line[0]);
      }
      if (!line.empty() && roll(8) == 0) line[0].duration_s = 1 + roll(20);
      if (!line.empty() && roll(10) == 0) {
        feed(CancelCommand(line.back().id));
        feed(Release(line.back().id, {}, /*ended=*/true));
        line.pop_back();
      }

      std::vector<Tried> tried;
      for (const PlannedJob& job : line) tried.push_back({job.id, job.duration_s, job.may_reserve});
      Envelope request = Backfill(static_cast<uint64_t>(cycle), tried, kReservations);
      request.mutable_cycle_requested()->set_now_s(now_s);
      request.mutable_cycle_requested()->mutable_rules(0)->set_plans_anew(true);
      const std::vector<Envelope> answers = feed(request);
      std::vector<Said> said;
      for (const Outcome& outcome : answers.at(0).cycle_answered().outcomes()) {
        said.push_back({outcome.kind(), outcome.at_s()});
      }
      const std::vector<Said> expected = naive.Cycle(now_s, line);
      RC_ASSERT(said == expected);

      std::vector<PlannedJob> left;
      for (size_t i = 0; i < line.size(); ++i) {
        if (said[i].kind != Outcome::KIND_ALLOCATED) left.push_back(line[i]);
      }
      line = std::move(left);
      tables.Apply(core.TakeChanges());
      core.Commit();
      if (roll(10) == 0) RC_ASSERT(core.Restore(tables.All()).ok());
    }
  }));
}

}  // namespace
}  // namespace fluxqueue::matcher_core
