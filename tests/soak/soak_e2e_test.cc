// Everything at random, for as long as FLUXQUEUE_SOAK_MINUTES says (default 2): workloads of all
// kinds, changed, evicted and deleted, on nodes that come and go, with services that die. Then all
// of it has to come to its end, and nothing may be left.
//
// FLUXQUEUE_SOAK_SEED (default 1) is that of the shuffling; what it meets is never quite the
// same. tools/soak sets both.
#include <algorithm>
#include <chrono>
#include <thread>

#include <absl/strings/str_join.h>

#include "libs/testing/environment.h"
#include "tests/e2e/system_test_base.h"
#include "tests/soak/hands.h"
#include "tests/soak/plan.h"
#include "tests/soak/settle.h"

namespace fluxqueue::soak {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kActionEvery{600};
constexpr seconds kSayEvery{10};
// `verify` while all of it goes on.
constexpr seconds kVerifyEvery{45};
// Of the minutes, for the end.
constexpr seconds kDrain{30};
constexpr seconds kMostForEnds{180};

// What was done of each kind, and what was not.
struct Tally {
  int done = 0;
  int refused = 0;
  std::string why{};  // the last time
};

class SoakTest : public e2e::SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 0, .sections = {{"binder", "kill_wait: 10s\n"}}});
  }

  void Act(Planner* planner) {
    Look();
    const auto action = planner->Next(world_);
    if (!action.has_value()) return;
    const absl::Status done = hands_.Do(*action);
    Tally& tally = tallies_[action->what];
    ++(done.ok() ? tally.done : tally.refused);
    if (done.ok()) return;
    tally.why = Message(done);
    // What is only made, or done to a node, is never refused. Others may have gone meanwhile.
    const bool must =
        Makes(action->what) || action->kind == "Node" || action->what == What::kKillService;
    EXPECT_FALSE(must) << Name(action->what) << " " << action->name << ": " << tally.why;
  }

  void Look() {
    auto seen = hands_.Look();
    ASSERT_TRUE(seen.ok()) << Message(seen.status());
    world_ = *std::move(seen);
  }

  void Say() {
    Look();
    int actions = 0;
    for (const auto& [what, tally] : tallies_) actions += tally.done + tally.refused;
    fmt::print("{:4} s  {} actions, {} objects, {} nodes; jobs: {}\n",
               std::chrono::duration_cast<seconds>(Clock::now() - begun_).count(),
               actions,
               world_.objects.size(),
               world_.nodes.size(),
               settling_.States());
    std::fflush(stdout);
  }

  void Verify() {
    const auto verified = system_->Fluxqueue({"verify", "--no-replay"});
    ASSERT_TRUE(verified.ok()) << Message(verified.status());
    EXPECT_EQ(verified->exit_code, 0) << verified->output;
  }

  void Load(uint64_t seed, seconds length) {
    Planner planner(seed, {.nodes = Hands::NodeNames()});
    Clock::time_point next = begun_;
    Clock::time_point say = begun_ + kSayEvery;
    Clock::time_point verify = begun_ + kVerifyEvery;
    const auto due = [](Clock::time_point* at, milliseconds every) {
      if (Clock::now() < *at) return false;
      *at = Clock::now() + every;
      return true;
    };
    while (Clock::now() < begun_ + length && !HasFailure()) {
      if (due(&next, kActionEvery)) Act(&planner);
      if (due(&say, kSayEvery)) Say();
      if (due(&verify, kVerifyEvery)) Verify();
      std::this_thread::sleep_until(next);
    }
  }

  void PrintTable() const {
    fmt::print("\n{:<14} {:>5} {:>7}  {}\n", "action", "done", "refused", "why, the last time");
    for (const auto& [what, tally] : tallies_) {
      fmt::print("{:<14} {:>5} {:>7}  {}\n",
                 Name(what),
                 tally.done,
                 tally.refused,
                 tally.why.substr(0, std::min<size_t>(tally.why.find('\n'), 160)));
    }
    fmt::print("\n");
  }

  static void ExpectNothing(const std::vector<std::string>& complaints) {
    EXPECT_TRUE(complaints.empty()) << absl::StrJoin(complaints, "\n");
  }

  Hands hands_{system_.get()};
  Settling settling_{system_.get(), &hands_};
  World world_;
  std::map<What, Tally> tallies_;
  Clock::time_point begun_ = Clock::now();
};

TEST_F(SoakTest, AllAtRandomComesToItsEndAndLeavesNothing) {
  const seconds length = std::chrono::minutes(testing::NumberOf("FLUXQUEUE_SOAK_MINUTES", 2));
  const uint64_t seed = testing::NumberOf("FLUXQUEUE_SOAK_SEED", 1);
  fmt::print("seed {}, {} s (again: FLUXQUEUE_SOAK_SEED={})\n", seed, length.count(), seed);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const absl::Status prepared = hands_.Prepare();
  ASSERT_TRUE(prepared.ok()) << Message(prepared);
  begun_ = Clock::now();
  Load(seed, std::max(length - kDrain, seconds(30)));
  PrintTable();
  ASSERT_FALSE(HasFailure());

  const absl::Status whole = settling_.MakeWhole();
  ASSERT_TRUE(whole.ok()) << Message(whole);
  const absl::Status ended = settling_.WaitForEnds(kMostForEnds);
  Say();
  ASSERT_TRUE(ended.ok()) << Message(ended);
  ExpectNothing(settling_.Ended());
  Verify();
  const absl::Status deleted = settling_.DeleteAll();
  ASSERT_TRUE(deleted.ok()) << Message(deleted);
  ExpectNothing(settling_.Gone());
  ExpectNothing(settling_.Services());
  Say();
}

}  // namespace
}  // namespace fluxqueue::soak
