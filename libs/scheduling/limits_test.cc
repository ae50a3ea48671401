#include "libs/scheduling/limits.h"

#include <gtest/gtest.h>

namespace fluxqueue::scheduling {
namespace {

Resources Of(std::initializer_list<std::pair<const char*, int64_t>> list) {
  Resources amounts;
  for (const auto& [name, amount] : list) amounts.Add(name, amount);
  return amounts;
}

Limits LimitOf(const char* resource, int64_t amount) {
  Limits limits;
  limits.Limit(resource, amount);
  return limits;
}

struct Case {
  const char* what;
  Limits limits;
  Resources held;
  uint32_t running;
  double gpu_seconds;
  Resources planned;
  uint32_t named;
  Resources asked;
  const char* sentence;  // empty: free
  bool soon = false;
};

TEST(LimitsTest, Table) {
  const Resources none;
  const Case kCases[] = {
      {"no limits", {}, Of({{"cpu", 9}}), 9, 9, none, 9, Of({{"cpu", 9}}), ""},
      {"below", {.running_jobs = 4}, none, 3, 0, none, 0, none, ""},
      {"at",
       {.running_jobs = 4},
       none,
       4,
       0,
       none,
       0,
       none,
       "user ann runs 4 of at most 4 jobs in queue research"},
      {"soon",
       {.running_jobs = 4},
       none,
       3,
       0,
       none,
       1,
       none,
       "user ann runs 3 of at most 4 jobs in queue research",
       true},
      {"none at all",
       {.running_jobs = 0},
       none,
       0,
       0,
       none,
       0,
       none,
       "user ann runs 0 of at most 0 jobs in queue research"},
      {"in line",
       {.queued_jobs = 10},
       none,
       99,
       0,
       none,
       10,
       none,
       "user ann has 10 of at most 10 jobs in line in queue research"},
      {"in line, below", {.queued_jobs = 10}, none, 99, 0, none, 9, none, ""},
      {"cpu fits",
       LimitOf("cpu", 4000),
       Of({{"cpu", 2000}}),
       1,
       0,
       none,
       0,
       Of({{"cpu", 2000}}),
       ""},
      {"cpu does not",
       LimitOf("cpu", 4000),
       Of({{"cpu", 2500}}),
       1,
       0,
       none,
       0,
       Of({{"cpu", 2000}}),
       "user ann holds cpu 2500m of at most 4 in queue research, and this job asks for 2"},
      {"cpu planned",
       LimitOf("cpu", 4000),
       Of({{"cpu", 1000}}),
       1,
       0,
       Of({{"cpu", 2000}}),
       1,
       Of({{"cpu", 2000}}),
       "user ann holds cpu 1 of at most 4 in queue research, and this job asks for 2",
       true},
      {"cpu never",
       LimitOf("cpu", 4000),
       none,
       0,
       0,
       none,
       0,
       Of({{"cpu", 5000}}),
       "it asks for cpu 5, and user ann may hold at most 4 in queue research: make it smaller, or "
       "raise the limit"},
      {"asks for none of it", LimitOf("cpu", 0), none, 0, 0, none, 0, Of({{"memory", 1}}), ""},
      {"gpus of any maker",
       LimitOf("nvidia.com/gpu", 2),
       Of({{"amd.com/gpu", 2}}),
       1,
       0,
       none,
       0,
       Of({{"gpu", 1}}),
       "user ann holds gpu 2 of at most 2 in queue research, and this job asks for 1"},
      {"another resource",
       LimitOf("example.com/fpga", 2),
       Of({{"example.com/fpga", 2}}),
       1,
       0,
       none,
       0,
       Of({{"example.com/fpga", 1}}),
       "user ann holds example.com/fpga 2 of at most 2 in queue research, and this job asks for 1"},
      {"gpu-hours",
       {.gpu_seconds = 7200},
       none,
       0,
       9000,
       none,
       0,
       Of({{"gpu", 1}}),
       "user ann has used 2.5 of at most 2 gpu-hours in queue research; half of it is forgotten "
       "each 24 h"},
      {"gpu-hours, without gpus",
       {.gpu_seconds = 7200},
       none,
       0,
       9000,
       none,
       0,
       Of({{"cpu", 1}}),
       ""},
      {"the greatest numbers",
       LimitOf("memory", INT64_MAX),
       Of({{"memory", INT64_MAX}}),
       1,
       0,
       Of({{"memory", INT64_MAX}}),
       1,
       Of({{"memory", INT64_MAX}}),
       "user ann holds memory 9223372036854775807 of at most 9223372036854775807 in queue "
       "research, "
       "and this job asks for 9223372036854775807"},
  };
  for (const Case& c : kCases) {
    const auto held = FirstAgainst(
        c.limits, Standing{c.held, c.running, c.gpu_seconds, c.planned, c.named}, c.asked);
    EXPECT_EQ(held.has_value(), *c.sentence != 0) << c.what;
    if (!held.has_value()) continue;
    EXPECT_EQ(Sentence(*held, Level::kUser, "ann", "research", 24 * 3'600'000), c.sentence)
        << c.what;
    EXPECT_EQ(held->soon, c.soon) << c.what;
  }
}

TEST(LimitsTest, WhoseItIs) {
  const Held held{.kind = Held::Kind::kRunningJobs, .resource = "", .limit = 4, .used = 4};
  EXPECT_EQ(Sentence(held, Level::kQueue, "", "research", 0),
            "queue research runs 4 of at most 4 jobs");
  EXPECT_EQ(Sentence(held, Level::kNamespace, "team", "research", 0),
            "namespace team runs 4 of at most 4 jobs in queue research");
  EXPECT_EQ(Sentence(held, Level::kUser, "", "research", 0),
            "user (not known) runs 4 of at most 4 jobs in queue research");
}

}  // namespace
}  // namespace fluxqueue::scheduling
