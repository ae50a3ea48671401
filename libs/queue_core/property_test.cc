// Properties of the core over random logs.
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "libs/model/rules.h"
#include "libs/queue_core/testing_simulation.h"

namespace fluxqueue::queue_core {
namespace {

Simulation Run(const std::vector<Step>& steps) {
  Simulation simulation(*rc::gen::element<uint32_t>(1, 2, model::kLatestRules));
  for (const Step& step : steps) simulation.Do(step);
  simulation.Finish();
  RC_CLASSIFY(simulation.preempted() > 0, "somebody was stopped for another");
  RC_CLASSIFY(simulation.grown() > 0, "an elastic job has got more slots");
  RC_CLASSIFY(simulation.shrunk() > 0, "an elastic job has given slots back");
  RC_CLASSIFY(simulation.replaced() > 0, "a job has slots in place of lost ones");
  RC_CLASSIFY(simulation.handed_in_again() > 0, "what was rejected was handed in again");
  RC_CLASSIFY(simulation.said().size() > 100, "more than 100 messages said");
  return simulation;
}

// Versions, exits, final releases, cycles in flight, poison: checked by the simulation as it goes.
RC_GTEST_PROP(QueueCoreProperty, InvariantsHoldAndEveryJobEnds, ()) {
  Run(*Steps());
}

// The same log, cut into other batches, each perhaps rolled back before it is committed, and the
// core perhaps made anew from the rows after it.
RC_GTEST_PROP(QueueCoreProperty, BatchesRollbacksAndRestoresChangeNothing, ()) {
  const Simulation simulation = Run(*Steps());
  std::minstd_rand random(*rc::gen::arbitrary<uint32_t>());
  const auto one_in = [&random](unsigned n) { return random() % n == 0; };
  const std::vector<Simulation::Record>& log = simulation.log();

  QueueCore core(kPool);
  FakeTables tables;
  std::vector<std::string> said;
  const auto handle = [&](size_t from, size_t to, std::vector<std::string>* bytes) {
    for (size_t i = from; i < std::min(to, log.size()); ++i) {
      Outputs outputs;
      const absl::Status status = core.Handle(log[i].message, log[i].now, &outputs);
      RC_ASSERT(status.ok() == !log[i].poison);
      Append(outputs, bytes);
    }
  };
  for (size_t at = 0; at < log.size();) {
    const uint64_t before = core.Fingerprint();
    if (one_in(2)) {
      std::vector<std::string> lost;
      handle(at, at + random() % 20, &lost);
      core.Rollback();
      RC_ASSERT(core.Fingerprint() == before);
      RC_ASSERT(core.TakeChanges().empty());
    }
    const size_t end = at + 1 + random() % 10;
    handle(at, end, &said);
    at = end;
    tables.Write(core.TakeChanges());
    core.Commit();
    if (one_in(2)) {
      QueueCore restored(kPool);
      RC_ASSERT(restored.Restore(tables.Read()).ok());
      RC_ASSERT(restored.Fingerprint() == core.Fingerprint());
      RC_ASSERT(restored.NextDeadline() == core.NextDeadline());
      if (one_in(2)) core = std::move(restored);
    }
  }
  RC_ASSERT(said == simulation.said());
}

TEST(QueueCoreRestore, RowsThatContradictEachOther) {
  Story story;
  story.Tell(Submitted("a"));
  Rows rows;
  for (const JobChange& job : story.changes().jobs) rows.jobs.push_back(job.row);
  QueueCore core(kPool);
  EXPECT_EQ(core.Restore(rows).code(), absl::StatusCode::kDataLoss);  // no pool

  rows.pool = story.changes().pool;
  const absl::Status status = core.Restore(rows);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), testing::HasSubstr("cycle 1 is in flight, but not in queue.cycles"));

  rows.cycles_unanswered.push_back(story.changes().cycles_requested[0].requested);
  EXPECT_THAT(Message(core.Restore(rows)),
              testing::HasSubstr("queue default, which does not exist"));

  queue::v1::QueueRow queue;
  queue.mutable_config()->set_queue("default");
  rows.queues.push_back(queue.SerializeAsString());
  EXPECT_TRUE(core.Restore(rows).ok());
  EXPECT_EQ(core.size(), 1U);
  rows.jobs.push_back("\xff");
  EXPECT_THAT(Message(core.Restore(rows)), testing::HasSubstr("jobs.row does not decode"));

  EXPECT_TRUE(core.Restore({}).ok());  // a new pool
  EXPECT_EQ(core.size(), 0U);
}

}  // namespace
}  // namespace fluxqueue::queue_core
