// Real parts, jobs in flight, and what goes wrong with parts, one after the other. In its short
// form each fault once; for FLUXQUEUE_CHAOS_MINUTES with many more jobs, each held longer, and some
// at once.
//
// FLUXQUEUE_CHAOS_SEED (default 1) is that of the order and of the jobs; FLUXQUEUE_CHAOS_FAULTS
// leaves out all faults that are not called so; into FLUXQUEUE_CHAOS_JSON goes what came of them.
// tools/chaos sets all four.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include <absl/strings/str_join.h>

#include "libs/testing/environment.h"
#include "libs/testing/shell.h"
#include "tests/chaos/checks.h"
#include "tests/chaos/fault.h"
#include "tests/chaos/load.h"
#include "tests/chaos/plan.h"
#include "tests/chaos/report.h"
#include "tests/chaos/sightings.h"
#include "tests/chaos/site.h"
#include "tests/e2e/system_test_base.h"
#include "tests/soak/hands.h"
#include "tests/soak/settle.h"

namespace fluxqueue::chaos {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration_cast;
using std::chrono::seconds;

constexpr int kReplicas = 2;
// A controller of Kubernetes whose request the API server has taken and not answered may trust for
// five minutes that what it expects will come; so does the binder (start_timeout).
constexpr seconds kTrust{330};
// What was said and lost is said again when it was missed twice.
constexpr seconds kSaidAgain{120};

struct Form {
  LoadOptions load{};
  seconds held{};       // between strike and heal of a fault that is held
  seconds most_ends{};  // from the healing until the last of the jobs in flight has ended
  size_t group = 1;     // strikes, one after the other, until their jobs are waited for
};

struct Struck {
  Strike strike{};
  std::vector<Made> jobs{};  // in flight at the strike
  Outcome outcome{};
};

std::string NamesOf(const Strike& strike) {
  std::vector<std::string> names;
  for (const Fault* fault : strike) names.push_back(fault->name);
  return absl::StrJoin(names, " + ");
}

bool Any(const Strike& strike, bool Fault::*what) {
  return std::ranges::any_of(strike, [what](const Fault* fault) { return fault->*what; });
}

Form ShortForm(uint64_t seed) {
  // The Job controller tries a write that failed again after up to a minute.
  return {.load = {.seed = seed}, .held = seconds(3), .most_ends = seconds(120), .group = 10};
}

// So long that the machine is not at its limit: what is measured is the recovery, not a backlog.
Form LongForm(uint64_t seed) {
  return {.load = {.seed = seed,
                   .in_flight = 500,
                   .at_once = 60,
                   .seconds_least = 30,
                   .seconds_most = 90},
          .held = seconds(30),
          .most_ends = seconds(240),
          .group = 4};
}

// Those that are asked for, of those that the machine can do.
std::vector<Fault> ChosenFaults(const Site& site, bool short_form) {
  std::vector<Fault> faults = AllFaults();
  const std::string chosen = testing::TextOf("FLUXQUEUE_CHAOS_FAULTS");
  std::erase_if(faults, [&](const Fault& fault) {
    if (short_form && chosen.empty() && fault.only_in_long_form) return true;
    const bool called = fault.name.find(chosen) != chosen.npos;
    // As a strike of two is called.
    const bool among = !chosen.empty() && chosen.find(fault.name) != chosen.npos;
    if (!called && !among) return true;
    if (!fault.needs_disks || site.has_disks()) return false;
    fmt::print("skip  {}: this process may not mount a disk\n", fault.name);
    return true;
  });
  return faults;
}

class ChaosTest : public e2e::SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 0,
                 .replicas = 0,
                 .arguments = {"--replicated"},
                 .sections = {{"binder", "kill_wait: 10s\n"}, {"cleanup", "sweep_interval: 10s\n"}},
                 .prepare = Site::Prepare});
  }

  // What SystemTest looks at in the end is looked at before.
  void TearDown() override {
    if (system_ != nullptr && HasFailure()) SayWhereToLook();
  }

  void SayWhereToLook() const {
    std::vector<std::string> failed;
    for (const Outcome& outcome : outcomes_) {
      if (!outcome.violations.empty()) failed.push_back(outcome.faults);
    }
    fmt::print(
        "bundle (logs, tables, objects): {}\nagain: tools/chaos --minutes 0 --seed {}{}\n",
        system_->SaveBundle(),
        seed_,
        failed.empty() ? "" : " --faults " + testing::ShellQuote(absl::StrJoin(failed, " + ")));
  }

  void Begin(const Form& form) {
    const absl::Status started = site_.Start(kReplicas);
    ASSERT_TRUE(started.ok()) << Message(started);
    const absl::Status prepared = hands_.Prepare();
    ASSERT_TRUE(prepared.ok()) << Message(prepared);
    sightings_ = std::make_unique<Sightings>(system_->folder() + "/kubeconfig",
                                             std::string(soak::kNamespace));
    checks_ = std::make_unique<Checks>(system_.get(), sightings_.get());
    load_ = std::make_unique<Load>(*system_, form.load);
    // A fault strikes a system at work.
    const auto at_work = [&] {
      return static_cast<int>(load_->InFlight().size()) >= form.load.in_flight / 2 &&
             IsBoundOther({});
    };
    const absl::Status works =
        system_->WaitFor(at_work, form.most_ends, [] { return "jobs in flight, and a binding"; });
    ASSERT_TRUE(works.ok()) << Message(works);
  }

  // A Job that is none of these.
  bool IsBoundOther(const std::vector<Made>& jobs) const {
    return checks_->IsAnyBound(load_->InFlight(), jobs);
  }

  // When that was; nothing: not within the time.
  std::optional<Clock::time_point> AwaitOther(const std::vector<Made>& jobs, seconds within) {
    const absl::Status bound =
        system_->WaitFor([&] { return IsBoundOther(jobs); }, within, [] { return ""; });
    if (!bound.ok()) return std::nullopt;
    return Clock::now();
  }

  // Strikes and heals, until Jobs that have come since are bound.
  Struck Hit(const Strike& strike, const Form& form) {
    Struck struck{.strike = strike, .jobs = load_->InFlight()};
    Outcome& outcome = struck.outcome;
    outcome.faults = NamesOf(strike);
    outcome.in_flight = static_cast<int>(struck.jobs.size());
    fmt::print("strike {}\n", outcome.faults);
    std::fflush(stdout);
    const Clock::time_point begun = Clock::now();
    for (const Fault* fault : strike) Perform(fault->strike, "it could not be done: ", &outcome);
    std::optional<Clock::time_point> recovered;
    if (std::ranges::any_of(strike, [](const Fault* fault) { return fault->held; })) {
      const Clock::time_point until = Clock::now() + form.held;
      recovered = AwaitOther(struck.jobs, form.held);
      std::this_thread::sleep_until(until);
    }
    for (auto fault = strike.rbegin(); fault != strike.rend(); ++fault) {
      Perform((*fault)->heal, "it could not be undone: ", &outcome);
    }
    outcome.held = duration_cast<Millis>(Clock::now() - begun);
    if (!recovered.has_value()) recovered = AwaitOther(struck.jobs, form.most_ends);
    outcome.recovery = duration_cast<Millis>(recovered.value_or(Clock::now()) - begun);
    Excuse(struck);
    return struck;
  }

  void Perform(const Deed& deed, const std::string& what, Outcome* outcome) {
    const absl::Status done = deed(site_);
    if (!done.ok()) outcome->violations.push_back(what + Message(done));
  }

  // Waits for the jobs that were in flight at the strikes. What is wrong with all of the system is
  // told of the last one.
  void Settle(std::vector<Struck>* group, const Form& form) {
    const Clock::time_point until = std::max(Clock::now(), late_until_) + form.most_ends;
    for (Struck& struck : *group) {
      const auto left = std::max(duration_cast<seconds>(until - Clock::now()), seconds(0));
      const absl::Status ended = checks_->AwaitEnds(struck.jobs, left);
      if (!ended.ok()) struck.outcome.violations.push_back(Message(ended));
      Check(&struck);
    }
    if (!group->empty()) {
      Add(checks_->Serves(), &group->back().outcome);
      Add(checks_->Verify(log_lost_), &group->back().outcome);
    }
    for (Struck& struck : *group) {
      fmt::print("{}", Line(struck.outcome));
      EXPECT_TRUE(struck.outcome.violations.empty()) << struck.outcome.faults;
      outcomes_.push_back(std::move(struck.outcome));
    }
    std::fflush(stdout);
    group->clear();
  }

  static void Add(Complaints complaints, Outcome* outcome) {
    std::ranges::move(complaints, std::back_inserter(outcome->violations));
  }

  void Check(Struck* struck) {
    Outcome* const outcome = &struck->outcome;
    Millis most = outcome->held;
    for (const Fault* fault : struck->strike) most += fault->recovery;
    if (outcome->recovery > most) {
      outcome->violations.push_back(fmt::format(
          "recovered after {} ms, {} are allowed", outcome->recovery.count(), most.count()));
    }
    Add(checks_->EndedOnce(struck->jobs), outcome);
    for (const Made& job : struck->jobs) {
      if (job.job && !excused_.contains(job.name)) Add(checks_->RanOnce(job), outcome);
    }
    // A release that was lost is said again, too.
    const auto late = duration_cast<seconds>(late_until_ - Clock::now());
    Add(checks_->NothingKept(struck->jobs, std::max(late, seconds(0))), outcome);
  }

  // Where pods are lost, those of jobs that were in flight, and of others that have come since, may
  // be made again; where the log is, those of all jobs.
  void Excuse(const Struck& struck) {
    const bool pods_lost = Any(struck.strike, &Fault::loses_pods);
    const bool log_lost = Any(struck.strike, &Fault::loses_log);
    if (log_lost) late_until_ = std::max(late_until_, Clock::now() + kSaidAgain);
    if (pods_lost) late_until_ = Clock::now() + kTrust;
    log_lost_ |= log_lost;
    if (!log_lost_ && !pods_lost) return;
    for (const Made& job : struck.jobs) excused_.insert(job.name);
    for (const Made& job : load_->InFlight()) excused_.insert(job.name);
  }

  void EachOnceInTurn(const std::vector<Fault>& faults, const Form& form) {
    std::vector<Struck> group;
    for (const Strike& strike : EachOnce(faults)) {
      if (strike.front()->loses_log && !replayed_) {
        Settle(&group, form);
        ReplayOnce();
      }
      group.push_back(Hit(strike, form));
      if (group.size() == form.group) Settle(&group, form);
    }
    Settle(&group, form);
    ReplayOnce();
  }

  // In the last third also those that lose the log.
  void AtRandom(const std::vector<Fault>& faults, const Form& form, seconds length) {
    Decks decks(seed_, faults);
    std::vector<Struck> group;
    const Clock::time_point begun = Clock::now();
    while (Clock::now() < begun + length) {
      const bool losing_log = Clock::now() >= begun + length * 2 / 3;
      if (losing_log && !replayed_) {
        Settle(&group, form);
        ReplayOnce();
      }
      const Strike strike = decks.Next(losing_log);
      if (strike.empty()) break;
      group.push_back(Hit(strike, form));
      if (group.size() == form.group) Settle(&group, form);
    }
    Settle(&group, form);
  }

  void ReplayOnce() {
    if (replayed_) return;
    replayed_ = true;
    Expect(checks_->Replay());
  }

  void End() {
    load_->Stop();
    const absl::Status whole = settling_.MakeWhole();
    ASSERT_TRUE(whole.ok()) << Message(whole);
    const absl::Status ended = settling_.WaitForEnds(seconds(180));
    ASSERT_TRUE(ended.ok()) << Message(ended);
    Expect(checks_->Ready());
    Expect(settling_.Ended());
    Expect(checks_->Verify(log_lost_));
    const absl::Status deleted = settling_.DeleteAll();
    ASSERT_TRUE(deleted.ok()) << Message(deleted);
    Expect(settling_.Gone());
    fmt::print("{} jobs were made; in the end: {}\n", load_->made(), settling_.States());
  }

  void Expect(const Complaints& complaints) {
    EXPECT_TRUE(complaints.empty()) << absl::StrJoin(complaints, "\n");
    violations_.insert(violations_.end(), complaints.begin(), complaints.end());
  }

  void Report() const {
    fmt::print("\n{}\n", Table(outcomes_));
    if (const std::string file = testing::TextOf("FLUXQUEUE_CHAOS_JSON"); !file.empty()) {
      std::ofstream(file) << Json(seed_, outcomes_, violations_);
    }
  }

  const uint64_t seed_ = testing::NumberOf("FLUXQUEUE_CHAOS_SEED", 1);
  Site site_{system_.get()};
  soak::Hands hands_{system_.get()};
  soak::Settling settling_{system_.get(), &hands_};
  std::unique_ptr<Sightings> sightings_;
  std::unique_ptr<Checks> checks_;
  std::unique_ptr<Load> load_;
  std::vector<Outcome> outcomes_;
  Complaints violations_;           // of no strike
  Clock::time_point late_until_{};  // jobs may be: somebody believes what is not so
  std::set<std::string> excused_;
  bool log_lost_ = false;
  bool replayed_ = false;
};

TEST_F(ChaosTest, EachJobEndsOnceWhateverIsStruck) {
  const auto length = std::chrono::minutes(testing::NumberOf("FLUXQUEUE_CHAOS_MINUTES", 0));
  const Form form = length.count() == 0 ? ShortForm(seed_) : LongForm(seed_);
  const std::vector<Fault> faults = ChosenFaults(site_, length.count() == 0);
  ASSERT_FALSE(faults.empty()) << "no fault is called so";
  fmt::print("seed {}, {} faults, {} jobs in flight\n", seed_, faults.size(), form.load.in_flight);
  std::fflush(stdout);
  Begin(form);
  if (HasFatalFailure()) return;
  if (length.count() == 0) {
    EachOnceInTurn(faults, form);
  } else {
    AtRandom(faults, form, length);
  }
  End();
  Report();
}

}  // namespace
}  // namespace fluxqueue::chaos
