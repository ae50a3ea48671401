#include "libs/scheduling/queue_tree.h"

#include <deque>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::scheduling {
namespace {

using testing::HasSubstr;

QueueSpec Under(const std::string& parent) {
  QueueSpec spec;
  spec.parent = parent;
  return spec;
}

Resources Cpu(int64_t milli) {
  Resources amounts;
  amounts.Add("cpu", milli);
  return amounts;
}

TEST(QueueTreeTest, CountsAtEachLevel) {
  QueueTree tree;
  tree.Configure("all", QueueSpec(), 1);
  tree.Configure("research", Under("all"), 1);
  Owner* ann = tree.OwnerOf("research", "ann", "team");
  Owner* bob = tree.OwnerOf("all", "bob", "team");
  tree.Hold(ann, Cpu(1000), 1);
  tree.Hold(ann, Cpu(500), 1);
  tree.Hold(bob, Cpu(250), 1);
  const QueueNode& all = tree.Node("all");
  EXPECT_EQ(all.total.held, Cpu(1750));
  EXPECT_EQ(all.total.running, 3U);
  EXPECT_EQ(all.accounts[1].at("team").held, Cpu(1750));
  EXPECT_EQ(all.accounts[2].at("ann").held, Cpu(1500));
  EXPECT_EQ(tree.Node("research").total.held, Cpu(1500));
  tree.GiveBack(ann, Cpu(500), 2001);
  EXPECT_EQ(all.accounts[2].at("ann").held, Cpu(1000));
  EXPECT_EQ(all.accounts[2].at("ann").past.used[kCpu], 3000);  // millicore · seconds

  // Moved below another queue, what is held goes with it, and history stays where it was made.
  tree.Configure("research", Under(""), 3001);
  EXPECT_EQ(all.total.held, Cpu(250));
  EXPECT_EQ(tree.Node("research").total.held, Cpu(1000));
  tree.Configure("late", QueueSpec(), 3001);
  tree.Configure("research", Under("late"), 3001);
  tree.GiveBack(ann, Cpu(1000), 5001);
  EXPECT_EQ(tree.Node("late").total.past.used[kCpu], 2000);
  EXPECT_EQ(all.accounts[2].at("ann").past.used[kCpu], 4000);
}

std::vector<std::string> Changed(QueueTree& tree) {
  std::vector<std::string> names;
  for (const PastRow& row : tree.ChangedPasts()) {
    names.push_back(row.queue + "/" + row.name + (row.past.at_ms == 0 ? " forgotten" : ""));
  }
  tree.Commit();
  return names;
}

TEST(QueueTreeTest, AnEditChangesThePastsThatItConcerns) {
  QueueTree tree;
  tree.Configure("all", QueueSpec(), 1);
  tree.Configure("other", QueueSpec(), 1);
  tree.Configure("part", Under("all"), 1);
  tree.Hold(tree.OwnerOf("part", "ann", "team"), Cpu(1000), 1);
  Owner* bob = tree.OwnerOf("other", "bob", "team");
  tree.Hold(bob, Cpu(1000), 1);
  tree.GiveBack(bob, Cpu(1000), 1001);
  tree.Commit();
  QueueSpec spec = Under("all");
  spec.weight = 7;
  spec.limits[0].running_jobs = 3;
  tree.Configure("part", spec, 2001);
  EXPECT_THAT(Changed(tree), testing::IsEmpty());
  spec.half_life_ms = 3'600'000;
  tree.Configure("part", spec, 3001);
  EXPECT_THAT(Changed(tree), testing::ElementsAre("part/", "part/team", "part/ann"));
  // What is held is counted elsewhere from now on.
  spec.parent = "other";
  tree.Configure("part", spec, 4001);
  EXPECT_THAT(
      Changed(tree),
      testing::ElementsAre("all/", "all/team", "all/ann", "other/", "other/team", "other/ann"));
  EXPECT_EQ(tree.Node("all").accounts[2].at("ann").past.used[kCpu], 4000);
  EXPECT_EQ(tree.Node("other").accounts[2].at("ann").past.used[kCpu], 0);
  EXPECT_EQ(tree.Node("other").total.past.used[kCpu], 1000);
  // A queue that nobody uses.
  tree.Configure("empty", Under("other"), 5001);
  EXPECT_THAT(Changed(tree), testing::IsEmpty());
}

TEST(QueueTreeTest, ForgetsPastsOfWhichNothingIsLeft) {
  QueueTree tree;
  QueueSpec hour;
  hour.half_life_ms = 3'600'000;
  tree.Configure("fades", hour, 1);
  tree.Configure("stays", QueueSpec(), 1);
  for (const char* queue : {"fades", "stays"}) {
    Owner* ann = tree.OwnerOf(queue, "ann", "team");
    tree.Hold(ann, Cpu(1000), 1);
    tree.GiveBack(ann, Cpu(1000), 64'001);
    tree.Hold(tree.OwnerOf(queue, "bob", "team"), Cpu(1000), 64'001);
  }
  tree.Commit();
  // Of 64 core seconds one is left after six half-lives, less what has faded meanwhile.
  constexpr int64_t kSixHours = 64'001 + 6 * 3'600'000;
  Owner* eve = tree.OwnerOf("stays", "eve", "club");
  tree.Hold(eve, Cpu(1), kSixHours - 60'000);
  EXPECT_THAT(Changed(tree), testing::Not(testing::Contains("fades/ann forgotten")));
  tree.GiveBack(eve, Cpu(1), kSixHours);
  EXPECT_THAT(Changed(tree), testing::Contains("fades/ann forgotten"));
  tree.Hold(eve, Cpu(1), kSixHours + 1);
  EXPECT_THAT(Changed(tree), testing::Not(testing::Contains("fades/ann forgotten")));
  // Taken back, it is forgotten another time.
  tree.GiveBack(tree.OwnerOf("fades", "bob", "team"), Cpu(1000), kSixHours + 2);
  tree.Commit();
  const std::vector<PastRow> before = tree.Pasts();
  tree.GiveBack(eve, Cpu(1), 100 * kSixHours);
  EXPECT_THAT(tree.Pasts(), testing::SizeIs(before.size() - 3));
  tree.RestorePasts();
  EXPECT_EQ(tree.Pasts(), before);
  tree.Hold(eve, Cpu(1), 100 * kSixHours);
  EXPECT_THAT(tree.Pasts(), testing::SizeIs(before.size() - 3));
}

TEST(QueueTreeTest, ParentsThatDoNotCount) {
  QueueTree tree;
  tree.Configure("a", Under("b"), 1);
  EXPECT_EQ(tree.Node("a").parent, nullptr);
  EXPECT_THAT(tree.ParentProblem("a"), HasSubstr("b does not exist"));
  tree.Configure("b", Under("c"), 1);
  EXPECT_EQ(tree.Node("a").parent, &tree.Node("b"));
  EXPECT_EQ(tree.ParentProblem("a"), "");
  tree.Configure("c", Under("b"), 1);
  // b and c are a cycle, a hangs from it.
  EXPECT_EQ(tree.Node("b").parent, nullptr);
  EXPECT_EQ(tree.Node("c").parent, nullptr);
  EXPECT_EQ(tree.Node("a").parent, &tree.Node("b"));
  EXPECT_THAT(tree.ParentProblem("b"), HasSubstr("each queue of the cycle is a root"));
  tree.Configure("d", Under("d"), 1);
  EXPECT_EQ(tree.Node("d").parent, nullptr);
  // One that is only named by jobs is no parent, nor one that was deleted.
  tree.Configure("e", Under("f"), 1);
  tree.OwnerOf("f", "", "");
  EXPECT_EQ(tree.Node("e").parent, nullptr);
  tree.Configure("f", QueueSpec(), 1);
  EXPECT_EQ(tree.Node("e").parent, &tree.Node("f"));
  tree.Configure("f", std::nullopt, 1);
  EXPECT_EQ(tree.Node("e").parent, nullptr);
}

struct Job : WaitingJob {
  Owner* owner = nullptr;
  Resources holds;
  int state = 0;  // 0: neither, 1: waits, 2: holds
};

// However queues, jobs and time change: the accounts are what the jobs say, a parent's past is at
// least that of a child while nothing moves, and RestorePasts undoes all.
RC_GTEST_PROP(QueueTreeTest, AccountsAreSumsOfJobs, ()) {
  QueueTree tree;
  std::deque<Job> jobs;
  int64_t now = 1;
  const auto queue = [](int n) { return std::string(1, static_cast<char>('a' + n % 4)); };
  for (const auto& [what, n, m] :
       *rc::gen::container<std::vector<std::tuple<int, int, int>>>(rc::gen::tuple(
           rc::gen::inRange(0, 6), rc::gen::inRange(0, 12), rc::gen::inRange(0, 12)))) {
    if (what == 0) {
      QueueSpec spec = Under(m % 5 == 4 ? "" : queue(m));
      spec.half_life_ms = m * 1000;
      tree.Configure(queue(n), n == 11 ? std::nullopt : std::optional(spec), now);
    } else if (what == 1) {
      now += n * 500;
    } else if (what == 2) {
      Job& job = jobs.emplace_back();
      job.owner = tree.OwnerOf(queue(n), fmt::format("u{}", m % 3), fmt::format("n{}", m % 2));
      job.holds = Cpu(1 + n);
      job.amounts = &job.holds;
      job.line_key = {m, jobs.size()};
    } else if (!jobs.empty()) {
      Job& job = jobs[static_cast<size_t>(n) % jobs.size()];
      if (job.state == 1) tree.NoLongerWait(job.owner, job.line_key);
      if (job.state == 2) tree.GiveBack(job.owner, job.holds, now);
      job.state = what - 3;
      if (job.state == 1) tree.Wait(job.owner, job.line_key, &job);
      if (job.state == 2) tree.Hold(job.owner, job.holds, now);
    }
    std::map<std::tuple<std::string, int, std::string>, std::pair<Resources, uint32_t>> expected;
    size_t waiting = 0;
    for (const Job& job : jobs) {
      if (job.state == 1) ++waiting;
      if (job.state != 2) continue;
      for (const QueueNode* at = job.owner->queue; at != nullptr; at = at->parent) {
        for (const auto& [level, name] : {std::pair(0, std::string()),
                                          std::pair(1, job.owner->space),
                                          std::pair(2, job.owner->user)}) {
          auto& [held, running] = expected[{at->name, level, name}];
          held.Add(job.holds);
          ++running;
        }
      }
    }
    const auto check = [&](const QueueNode& node, int level, const Account& account) {
      const auto& [held, running] = expected[{node.name, level, account.name}];
      RC_ASSERT(account.held == held);
      RC_ASSERT(account.running == running);
    };
    for (const auto& [name, node] : tree.nodes()) {
      check(*node, 0, node->total);
      for (int level : {1, 2}) {
        for (const auto& [who, account] : node->accounts[level]) check(*node, level, account);
      }
      for (const Owner* owner : node->waiting) waiting -= owner->line.size();
    }
    RC_ASSERT(waiting == 0U);
  }
  // The pasts that changed are those that differ.
  const std::vector<PastRow> before = tree.Pasts();
  tree.Commit();
  for (Job& job : jobs) {
    if (job.state == 2) tree.GiveBack(job.owner, job.holds, now + 1000);
  }
  for (const PastRow& row : tree.ChangedPasts()) {
    RC_ASSERT(std::find(before.begin(), before.end(), row) == before.end());
  }
  tree.RestorePasts();
  RC_ASSERT(tree.Pasts() == before);
}

}  // namespace
}  // namespace fluxqueue::scheduling
