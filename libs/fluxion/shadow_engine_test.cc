// The native engine decides and Fluxion's library, in a process of its own, is asked the same.
#include "libs/fluxion/shadow_engine.h"

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/fluxion/engines.h"
#include "libs/graph/engine_kind.h"

namespace fluxqueue::fluxion {
namespace {

using graph::Engine;
using graph::EngineKind;
using graph::Jobspec;
using graph::NodeSpec;
using graph::OutcomeKind;
using ::testing::HasSubstr;

Jobspec Cpu(int64_t milli) {
  Jobspec spec;
  spec.slots = 1;
  spec.groups = {{1, {{"cpu", milli}}}};
  spec.shape = std::to_string(milli);
  return spec;
}

class ShadowEngineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> Make(const std::string& library, const EngineKind& kind) {
    EngineOptions options;
    options.library = library;
    options.host = FLUXQUEUE_FLUXION_HOST;
    options.pool = "default";
    options.compared = [this](Comparison result, size_t answers) {
      counts_[static_cast<size_t>(result)] += answers;
    };
    absl::StatusOr<std::unique_ptr<Engine>> engine = MakeEngines(options)(kind);
    EXPECT_TRUE(engine.ok()) << engine.status();
    EXPECT_TRUE((*engine)->SetPolicy("lonode").ok());
    for (uint64_t i = 0; i < 2; ++i) {
      NodeSpec node;
      node.name = "n" + std::to_string(i);
      node.uid = node.name;
      node.ordinal = i;
      node.resources = {{"cpu", 1000}};
      EXPECT_TRUE((*engine)->AddNode(node).ok());
    }
    return *std::move(engine);
  }

  // The node; "": none.
  static std::string Match(Engine& engine, const std::string& job, int64_t milli) {
    const Jobspec spec = Cpu(milli);
    const graph::Outcome outcome = engine.Match({.key = {job, 1, 0}, .jobspec = spec});
    return outcome.placement == nullptr ? "" : outcome.placement->slots[0].node;
  }

  size_t Count(Engine& engine, Comparison result) {
    dynamic_cast<ShadowEngine&>(engine).Drain();
    return counts_[static_cast<size_t>(result)];
  }

  std::array<std::atomic<size_t>, 4> counts_{};
};

TEST_F(ShadowEngineTest, CountsDifferencesAndStaysInStep) {
  const auto engine = Make(FLUXQUEUE_REAPI_LIBRARY, {.name = "shadow"});
  EXPECT_EQ(Match(*engine, "a", 500), "n0");
  EXPECT_EQ(Count(*engine, Comparison::kEqual), 1u);
  // A half of a core is a whole one to Fluxion, which takes the other node.
  EXPECT_EQ(Match(*engine, "b", 500), "n0");
  EXPECT_EQ(Count(*engine, Comparison::kPlacement), 1u);
  // Were it not told what was decided, it would have no room for this.
  EXPECT_EQ(Match(*engine, "c", 1000), "n1");
  EXPECT_EQ(Count(*engine, Comparison::kEqual), 2u);
  EXPECT_TRUE(engine->Release({"a", 1, 0}));
  EXPECT_EQ(Match(*engine, "d", 250), "n0");
  EXPECT_EQ(Match(*engine, "e", 250), "n0");
  EXPECT_EQ(Count(*engine, Comparison::kOutcome), 2u);
  EXPECT_EQ(Count(*engine, Comparison::kSkipped), 0u);
}

TEST_F(ShadowEngineTest, SeesWhatIsCommitted) {
  const auto engine = Make(FLUXQUEUE_REAPI_LIBRARY, {.name = "shadow"});
  engine->Checkpoint();
  EXPECT_EQ(Match(*engine, "a", 1000), "n0");
  engine->Rollback();
  engine->Checkpoint();
  EXPECT_EQ(Match(*engine, "b", 1000), "n0");
  EXPECT_EQ(Count(*engine, Comparison::kEqual), 0u);
  engine->Commit();
  EXPECT_EQ(Count(*engine, Comparison::kEqual), 1u);
}

TEST_F(ShadowEngineTest, ClosesWhatIsClosed) {
  const auto engine = Make(FLUXQUEUE_REAPI_LIBRARY, {.name = "shadow"});
  engine->SetClosures({{graph::Constraint::IsHost("n0"), 0, 10}});
  EXPECT_EQ(Match(*engine, "a", 1000), "n1");
  EXPECT_EQ(Match(*engine, "b", 1000), "");
  // Said in a batch that is taken back, it holds all the same.
  engine->Checkpoint();
  engine->SetClosures({});
  engine->Rollback();
  EXPECT_EQ(Match(*engine, "c", 1000), "n0");
  engine->SetClosures({{graph::Constraint::And({}), 0, 10}});
  EXPECT_TRUE(engine->Release({"c", 1, 0}));
  EXPECT_EQ(Match(*engine, "d", 1000), "");
  EXPECT_EQ(Count(*engine, Comparison::kEqual), 4u);
}

// What a busy pool asks, in which a wide job waits: one that would delay it may not pass, and one
// that would not may. Both say so, and go on saying so.
TEST_F(ShadowEngineTest, ComparesWhileSomethingIsReserved) {
  for (const EngineKind& kind :
       {EngineKind{.name = "shadow"}, EngineKind{.name = "shadow", .shadow = "native"}}) {
    for (auto& count : counts_) count = 0;
    const auto engine = Make(FLUXQUEUE_REAPI_LIBRARY, kind);
    const Jobspec one = Cpu(1000);
    Jobspec both = Cpu(1000);
    both.slots = both.groups[0].slots = 2;
    both.shape = "both";
    const auto ask = [&](const std::string& job, const Jobspec& spec, int64_t duration_s) {
      const graph::Outcome outcome =
          engine->Match({.operation = graph::Operation::kAllocateOrReserve,
                         .key = {job, 1, 0},
                         .jobspec = spec,
                         .now_s = 10,
                         .duration_s = duration_s,
                         .before_s = job == "late" ? 50 : 0});
      return outcome.kind == OutcomeKind::kAllocated ? 10 : outcome.at_s;
    };
    EXPECT_EQ(ask("runs", one, 90), 10);
    EXPECT_EQ(ask("wide", both, 100), 100);
    EXPECT_EQ(ask("late", one, 91), 0);
    EXPECT_EQ(ask("passes", one, 90), 10);
    EXPECT_EQ(Count(*engine, Comparison::kEqual), 4u);
    EXPECT_TRUE(engine->Release({"passes", 1, 0}));
    // Made anew in a batch that is taken back, it stands; dropped in one, it is gone.
    const graph::Placement promised{.slots = {{0, "n0", false}, {1, "n1", false}},
                                    .groups = both.groups,
                                    .start_s = 100,
                                    .duration_s = 100};
    engine->Checkpoint();
    engine->DropReservations();
    EXPECT_TRUE(engine->Reserve({"wide", 1, 0}, promised));
    engine->Rollback();
    EXPECT_EQ(ask("late", one, 91), 0);
    engine->Checkpoint();
    engine->DropReservation({"wide", 1, 0});
    engine->Rollback();
    EXPECT_EQ(ask("late", one, 91), 10);
    EXPECT_EQ(Count(*engine, Comparison::kEqual), 6u);
    // Matched now, nothing of it is reserved any more.
    EXPECT_TRUE(engine->Release({"late", 1, 0}));
    EXPECT_TRUE(engine->Reserve({"wide", 1, 0}, promised));
    EXPECT_TRUE(engine->Release({"runs", 1, 0}));
    EXPECT_EQ(ask("wide", both, 100), 10);
    EXPECT_EQ(Count(*engine, Comparison::kEqual), 7u);
    EXPECT_EQ(Count(*engine, Comparison::kSkipped), 0u);
  }
}

TEST_F(ShadowEngineTest, TheOtherWayRound) {
  const auto engine = Make(FLUXQUEUE_REAPI_LIBRARY, {.name = "shadow", .shadow = "native"});
  EXPECT_EQ(Match(*engine, "a", 500), "n0");
  EXPECT_EQ(Match(*engine, "b", 500), "n1");
  EXPECT_EQ(Count(*engine, Comparison::kEqual), 1u);
  EXPECT_EQ(Count(*engine, Comparison::kPlacement), 1u);
}

TEST_F(ShadowEngineTest, IsToldOfGrowth) {
  const auto engine = Make(FLUXQUEUE_REAPI_LIBRARY, {.name = "shadow"});
  EXPECT_EQ(Match(*engine, "a", 500), "n0");
  const Jobspec more = Cpu(500);
  const auto grown = engine->Grow({.key = {"a", 1, 0}, .jobspec = more});
  ASSERT_NE(grown.placement, nullptr);
  EXPECT_EQ(grown.placement->slots[1].node, "n0");
  EXPECT_EQ(Count(*engine, Comparison::kSkipped), 1u);
  // It knows what is held now, and with the key all of it is free again.
  EXPECT_EQ(Match(*engine, "b", 1000), "n1");
  EXPECT_TRUE(engine->Release({"a", 1, 0}));
  EXPECT_EQ(Match(*engine, "c", 1000), "n0");
  EXPECT_EQ(Count(*engine, Comparison::kEqual), 3u);
}

TEST_F(ShadowEngineTest, FluxionGrowsToo) {
  const auto engine = Make(FLUXQUEUE_REAPI_LIBRARY, {.name = "fluxion"});
  EXPECT_EQ(Match(*engine, "a", 1000), "n0");
  const Jobspec more = Cpu(1000);
  const auto grown = engine->Grow({.key = {"a", 1, 0}, .jobspec = more});
  ASSERT_NE(grown.placement, nullptr);
  EXPECT_EQ(grown.placement->slots[1].node, "n1");
  EXPECT_EQ(engine->Grow({.key = {"a", 1, 0}, .jobspec = more}).placement, nullptr);
  EXPECT_EQ(Match(*engine, "b", 1000), "");
  EXPECT_TRUE(engine->Release({"a", 1, 0}));
  EXPECT_EQ(Match(*engine, "b", 1000), "n0");
}

TEST_F(ShadowEngineTest, AShadowThatFailsHoldsNobodyUp) {
  const auto engine = Make("/nowhere/libreapi_cli.so", {.name = "shadow"});
  EXPECT_EQ(Match(*engine, "a", 500), "n0");
  EXPECT_EQ(Match(*engine, "b", 500), "n0");
  EXPECT_EQ(Count(*engine, Comparison::kSkipped), 2u);
  EXPECT_EQ(Match(*engine, "c", 500), "n1");
  EXPECT_EQ(Count(*engine, Comparison::kSkipped), 3u);
  EXPECT_EQ(Count(*engine, Comparison::kEqual), 0u);
}

TEST(Engines, SaysWhatIsMissing) {
  EngineOptions options;
  options.host = FLUXQUEUE_FLUXION_HOST;
  options.library = "/nowhere/libreapi_cli.so";
  const absl::Status missing = CheckLibrary(options);
  EXPECT_TRUE(absl::IsInvalidArgument(missing));
  EXPECT_THAT(Message(missing), HasSubstr("/nowhere/libreapi_cli.so"));
  EXPECT_THAT(Message(missing), HasSubstr("flux-sched 0.54"));
  // A library, but another one.
  options.library = "libc.so.6";
  EXPECT_THAT(Message(CheckLibrary(options)),
              HasSubstr("libc.so.6: has no function reapi_cli_new"));
  options.library = FLUXQUEUE_REAPI_LIBRARY;
  EXPECT_TRUE(CheckLibrary(options).ok()) << CheckLibrary(options);
  options.host = "/nowhere/fluxqueue-fluxion-host";
  EXPECT_THAT(Message(CheckLibrary(options)), HasSubstr("/nowhere/fluxqueue-fluxion-host"));
}

TEST(Engines, AreThoseOfTheConfiguration) {
  EngineOptions options;
  const graph::MakeEngine without = MakeEngines(options);
  options.library = FLUXQUEUE_REAPI_LIBRARY;
  const graph::MakeEngine with = MakeEngines(options);
  EXPECT_TRUE(without({}).ok());
  EXPECT_EQ(without({.name = "fluxion"}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(with({.name = "mauve"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(with({.name = "shadow", .shadow = "mauve"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fluxqueue::fluxion
