// Random logs: batches, failed commits and restarts change nothing of what is said.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using Random = std::minstd_rand;

uint32_t Roll(Random& random, uint32_t sides) {
  return static_cast<uint32_t>(random() % sides);
}

// A log as its producers could write it, and some that they should not.
class LogWriter {
 public:
  std::vector<Envelope> Write(const std::vector<uint32_t>& steps) {
    std::vector<Envelope> log;
    for (const uint32_t step : steps) {
      Random random(step);
      random.discard(2);
      log.push_back(Message(random));
      log.back().set_time_ms(At(Now()).count());
    }
    return log;
  }

 private:
  Envelope Message(Random& random) {
    switch (Roll(random, 16)) {
      case 0:
      case 1:
      case 2:
        return Upserted(Node(random));
      case 3:
        return Gone(Name(random), "uid-" + std::to_string(Roll(random, 2)));
      case 4:
        return Roll(random, 4) == 0 ? Synced() : Configured(Policy(random), Levels(random));
      case 5:
      case 6:
      case 7:
        return Submit(random);
      case 8:
        return Updated(Job(random), Roll(random, 4), 1 + Roll(random, 3), 500);
      case 9:
        return Release(Job(random), {}, Roll(random, 2) == 0, 1 + Roll(random, 2));
      case 10:
        return Release(Job(random), {Roll(random, 3)}, false, 1 + Roll(random, 2));
      case 11:
        if (Roll(random, 2) == 0) return AnyWindow(random);
        return Cycle(Roll(random, 10), {Job(random)});  // mostly an old one
      default:
        return NextCycle(random);
    }
  }

  events::v1::Node Node(Random& random) {
    events::v1::Node node = MakeNode(Name(random),
                                     static_cast<int64_t>(Roll(random, 4)) * 1000,
                                     static_cast<int64_t>(Roll(random, 20)),
                                     "uid-" + std::to_string(Roll(random, 2)));
    node.set_ready(Roll(random, 6) != 0);
    auto* label = node.add_labels();
    label->set_key("half");
    label->set_value(std::to_string(Roll(random, 2)));
    if (Roll(random, 4) != 0) {
      auto* zone = node.add_labels();
      zone->set_key("zone");
      zone->set_value(std::to_string(Roll(random, 3)));
    }
    if (Roll(random, 3) == 0) {
      auto* foreign = node.add_foreign();
      foreign->set_resource("cpu");
      foreign->set_amount(static_cast<int64_t>(Roll(random, 2000)));
    }
    if (Roll(random, 4) == 0) {
      node.add_foreign()->set_resource(Port(random));
      node.mutable_foreign()->rbegin()->set_amount(1);
    }
    if (Roll(random, 4) == 0) {
      events::v1::Node::Pods* pods = node.add_foreign_pods();
      pods->set_pod(Pod(random));
      if (Roll(random, 2) == 0) pods->set_rules(R"({"apart":[)" + Rule(random, "") + "]}");
      pods->set_count(1 + Roll(random, 2));
    }
    return node;
  }

  static std::string Port(Random& random) {
    return "hostport-8" + std::to_string(Roll(random, 3)) + "-tcp";
  }
  static std::string App(Random& random) {
    return R"("labels":{"app":"a)" + std::to_string(Roll(random, 2)) + R"("})";
  }
  static std::string Pod(Random& random) { return R"({"namespace":"lab",)" + App(random) + "}"; }
  static std::string Rule(Random& random, const std::string& more) {
    const char* key = Roll(random, 2) == 0 ? "zone" : "half";
    return R"({"key":")" + std::string(key) + R"(","pods":{)" + App(random) + "}" + more + "}";
  }

  // The jobspec with labels, and mostly with rules between pods, or a port of the node.
  static std::string Ruled(Random& random, std::string text) {
    const std::string pod = Pod(random);
    switch (Roll(random, 5)) {
      case 0:
        return OfPods(std::move(text), pod, R"({"apart":[)" + Rule(random, "") + "]}");
      case 1:
        return OfPods(std::move(text), pod, R"({"beside":[)" + Rule(random, "") + "]}");
      case 2: {
        const char* more = R"(,"skew":1,"domains":1,"affinity":true,"taints":true)";
        return OfPods(std::move(text), pod, R"({"spread":[)" + Rule(random, more) + "]}");
      }
      case 3:
        text.insert(text.find(R"({"type":"cpu")"),
                    R"({"type":")" + Port(random) + R"(","count":1},)");
        return text;
      default:
        return OfPods(std::move(text), pod);
    }
  }

  Envelope Submit(Random& random) {
    if (Roll(random, 10) == 0) return Submitted(Job(random), 1, "{");
    if (Roll(random, 20) == 0) return CancelCommand(Job(random));
    if (Roll(random, 4) == 0) {
      const uint32_t slots = 1 + Roll(random, 3);
      return Claimed(Job(random), slots, JobspecText(slots, 250));
    }
    if (Roll(random, 3) == 0) {
      const uint32_t min = 1 + Roll(random, 3);
      const uint32_t max = min + Roll(random, 6);
      return Submitted(Job(random), max, ElasticText(min, max, 250 * (1 + Roll(random, 3))));
    }
    const uint32_t slots = 1 + Roll(random, 4);
    if (slots > 1 && Roll(random, 3) == 0) {
      const int64_t cpu = 250 * static_cast<int64_t>(1 + Roll(random, 5));
      return Submitted(Job(random), slots, GroupsText(slots, cpu));
    }
    const char* property = Roll(random, 3) == 0 ? "half=1" : "";
    std::string text =
        JobspecText(slots, 250 * static_cast<int64_t>(1 + Roll(random, 5)), property);
    if (Roll(random, 2) == 0) text = Ruled(random, std::move(text));
    return Submitted(Job(random), slots, text);
  }

  // In the seconds of cycles.
  int64_t Now() const { return static_cast<int64_t>(100 + cycle_); }

  static std::string WindowName(Random& random) { return "w" + std::to_string(Roll(random, 4)); }

  Envelope AnyWindow(Random& random) {
    if (Roll(random, 4) == 0) return WindowDeleted(WindowName(random));
    const int64_t from_s = Now() + static_cast<int64_t>(Roll(random, 30)) - 10;
    // Some that end before they begin.
    Envelope message =
        Window(WindowName(random), from_s, from_s + static_cast<int64_t>(Roll(random, 40)) - 2);
    auto* window = message.mutable_window_configured();
    if (Roll(random, 2) == 0) window->add_nodes(Name(random));
    if (Roll(random, 2) == 0) {
      window->add_labels()->set_key("half");
      window->mutable_labels(0)->set_value(std::to_string(Roll(random, 2)));
    }
    return message;
  }

  Envelope NextCycle(Random& random) {
    std::vector<std::string> jobs;
    for (size_t i = Roll(random, 8); i > 0; --i) jobs.push_back(Job(random));
    Envelope message = Cycle(++cycle_, jobs, Roll(random, 2) == 0, 1 + Roll(random, 2));
    message.mutable_cycle_requested()->mutable_rules(0)->set_most_reservations(Roll(random, 3));
    message.mutable_cycle_requested()->set_version(Roll(random, 4));
    events::v1::CycleRequested::Rule* other = message.mutable_cycle_requested()->add_rules();
    other->set_stop_at_first_blocked(Roll(random, 2) == 0);
    other->set_most_reservations(Roll(random, 3));
    other->set_plans_anew(Roll(random, 3) == 0);
    for (auto& candidate : *message.mutable_cycle_requested()->mutable_candidates()) {
      candidate.set_may_reserve(Roll(random, 2) == 0);
      candidate.set_rule(Roll(random, 2));
      candidate.set_overdue(Roll(random, 5) == 0);
      candidate.set_duration_s(Roll(random, 4) == 0 ? 0 : Roll(random, 30));
      if (Roll(random, 2) == 0) candidate.set_bound_s(Roll(random, 200));
      candidate.set_backfill_turn(Roll(random, 6));
      if (Roll(random, 3) == 0) candidate.add_windows(WindowName(random));
      candidate.set_grow(Roll(random, 3) == 0);
      if (Roll(random, 3) == 0) candidate.set_most_slots(Roll(random, 8));
      if (Roll(random, 4) != 0) continue;
      for (size_t i = Roll(random, 6); i > 0; --i) {
        events::v1::AllocationKey* victim = candidate.add_victims();
        victim->set_job_id(Job(random));
        victim->set_attempt(1 + Roll(random, 2));
      }
    }
    return message;
  }

  static std::string Name(Random& random) { return "n" + std::to_string(Roll(random, 12)); }
  static std::string Job(Random& random) { return "job" + std::to_string(Roll(random, 20)); }
  static std::string Policy(Random& random) {
    return std::vector<std::string>{
        "first", "lonode", "hinode", "packed", "", "unknown"}[Roll(random, 6)];
  }

  static std::vector<std::string> Levels(Random& random) {
    return std::vector<std::vector<std::string>>{
        {}, {"zone"}, {"zone"}, {"zone", "rack"}, {"zone", "zone"}}[Roll(random, 5)];
  }

  uint64_t cycle_ = 0;
};

class Runner {
 public:
  void Handle(const Envelope& message) {
    std::vector<Envelope> said;
    const size_t before = fingerprints_ ? core_->Fingerprint() : 0;
    const absl::Status status = core_->Handle(message, Millis(message.time_ms()), &said);
    if (!status.ok()) {
      RC_ASSERT(absl::IsInvalidArgument(status));
      RC_ASSERT(said.empty());
      if (fingerprints_) RC_ASSERT(core_->Fingerprint() == before);
    }
    for (const Envelope& envelope : said) out_.push_back(envelope.SerializeAsString());
  }

  void Commit() {
    tables_.Apply(core_->TakeChanges());
    core_->Commit();
    RC_ASSERT(core_->TakeChanges().empty());
  }

  // A new process.
  void Restart() {
    const uint64_t before = core_->Fingerprint();
    core_ = std::make_unique<MatcherCore>("default");
    const absl::Status restored = core_->Restore(tables_.All());
    RC_ASSERT(restored.ok());
    RC_ASSERT(core_->Fingerprint() == before);
  }

  // Handles the messages in vain.
  void Fail(const Envelope* begin, const Envelope* end) {
    const uint64_t before = core_->Fingerprint();
    std::vector<Envelope> said;
    for (const Envelope* message = begin; message != end; ++message) {
      (void)core_->Handle(*message, Millis(message->time_ms()), &said);
    }
    core_->Rollback();
    RC_ASSERT(core_->Fingerprint() == before);
    RC_ASSERT(core_->TakeChanges().empty());
  }

  void CheckFingerprints() { fingerprints_ = true; }
  const std::vector<std::string>& out() const { return out_; }
  const Tables& tables() const { return tables_; }
  uint64_t Fingerprint() const { return core_->Fingerprint(); }

 private:
  std::unique_ptr<MatcherCore> core_ = std::make_unique<MatcherCore>("default");
  Tables tables_;
  std::vector<std::string> out_;
  bool fingerprints_ = false;
};

void CheckLog(const std::vector<uint32_t>& steps, uint32_t seed) {
  const std::vector<Envelope> log = LogWriter().Write(steps);
  Runner plain;  // one message, one commit
  plain.CheckFingerprints();
  for (const Envelope& message : log) {
    plain.Handle(message);
    plain.Commit();
  }
  Runner troubled;
  Random random(seed + 1);
  for (size_t i = 0; i < log.size();) {
    const size_t end = std::min(log.size(), i + 1 + Roll(random, 6));
    if (Roll(random, 3) == 0) troubled.Fail(&log[i], log.data() + end);
    for (; i < end; ++i) troubled.Handle(log[i]);
    troubled.Commit();
    if (Roll(random, 3) == 0) troubled.Restart();
  }
  RC_ASSERT(troubled.out() == plain.out());
  RC_ASSERT(troubled.tables() == plain.tables());
  RC_ASSERT(troubled.Fingerprint() == plain.Fingerprint());
}

TEST(MatcherCoreProperties, BatchesFailuresAndRestartsChangeNothing) {
  EXPECT_TRUE(rc::check("random logs", [](const std::vector<uint32_t>& steps, uint32_t seed) {
    CheckLog(steps, seed);
  }));
}

TEST(MatcherCoreProperties, LongLogs) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    std::vector<uint32_t> steps(400);
    for (uint32_t& step : steps) step = static_cast<uint32_t>(random());
    CheckLog(steps, seed);
  }
}

}  // namespace
}  // namespace fluxqueue::matcher_core
