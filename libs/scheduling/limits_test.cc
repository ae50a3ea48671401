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

TEST(LimitsTest, HowOftenFitsWithin) {
  const Resources none;
  const Resources each = Of({{"cpu", 300}, {"gpu", 1}, {"fpga", 2}});
  Limits hours;
  hours.gpu_seconds = 10;
  const struct {
    Limits limits;
    Resources held;
    Resources planned;
    double gpu_seconds;
    uint32_t times;
  } cases[] = {
      {{}, none, none, 0, 9},
      {LimitOf("cpu", 1000), none, none, 0, 3},
      {LimitOf("cpu", 1000), Of({{"cpu", 300}}), Of({{"cpu", 200}}), 0, 1},
      {LimitOf("cpu", 1000), Of({{"cpu", 1200}}), none, 0, 0},
      {LimitOf("cpu", 1000), Of({{"cpu", 900}}), Of({{"cpu", 900}}), 0, 0},
      {LimitOf("cpu", 100'000), none, none, 0, 9},
      {LimitOf("memory", 0), none, none, 0, 9},
      {LimitOf("nvidia.com/gpu", 4), Of({{"amd.com/gpu", 1}}), none, 0, 3},
      {LimitOf("fpga", 5), none, Of({{"fpga", 1}}), 0, 2},
      {{.running_jobs = 0}, none, none, 0, 9},
      {hours, none, none, 9, 9},
      {hours, none, none, 10, 0},
  };
  for (const auto& test : cases) {
    const Standing standing{test.held, 0, test.gpu_seconds, test.planned, 0};
    EXPECT_EQ(TimesWithin(test.limits, standing, each, 9), test.times);
  }
}

TEST(ResourcesTest, Parts) {
  const Resources all = Of({{"cpu", 7000}, {"gpu", 14}, {"fpga", 7}});
  EXPECT_EQ(all.Part(7, 7), all);
  EXPECT_EQ(all.Part(2, 7), Of({{"cpu", 2000}, {"gpu", 4}, {"fpga", 2}}));
  EXPECT_EQ(all.Part(0, 7), Resources());
  EXPECT_EQ(Of({{"memory", int64_t{1} << 62}}).Part(3, 4), Of({{"memory", int64_t{3} << 60}}));
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
