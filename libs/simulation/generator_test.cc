#include "libs/simulation/generator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/simulation/lublin.h"
#include "libs/trace/swf.h"

namespace fluxqueue::simulation {
namespace {

using trace::TraceJob;

GeneratorOptions Options(Requests requests) {
  GeneratorOptions options;
  options.jobs = 4000;
  options.requests = requests;
  return options;
}

TEST(LublinTest, DistributionsHaveTheirMeans) {
  Random random(1);
  constexpr int kDraws = 20'000;
  const auto mean = [](const auto& draw) {
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) sum += draw();
    return sum / kDraws;
  };
  EXPECT_NEAR(mean([&] { return random.Uniform(); }), 0.5, 0.01);
  EXPECT_NEAR(mean([&] { return random.Gamma(4.2, 0.94); }), 4.2 * 0.94, 0.06);
  EXPECT_NEAR(mean([&] { return random.Gamma(312, 0.03); }), 312 * 0.03, 0.02);
  EXPECT_NEAR(mean([&] { return random.Gamma(0.5, 2); }), 1, 0.05);
  EXPECT_NEAR(mean([&] { return random.Normal(); }), 0, 0.03);
}

TEST(LublinTest, WidthsAndRunTimesAreThoseOfTheModel) {
  LublinModel model(256);
  Random random(2);
  constexpr int kDraws = 20'000;
  int serial = 0;
  int powers = 0;
  int short_ones = 0;
  for (int i = 0; i < kDraws; ++i) {
    const int64_t processors = model.Processors(&random);
    ASSERT_GE(processors, 1);
    ASSERT_LE(processors, 256);
    if (processors == 1) ++serial;
    if (processors > 1 && (processors & (processors - 1)) == 0) ++powers;
    const double run_s = model.RunTime(1, &random);
    ASSERT_GE(run_s, 1);
    ASSERT_LE(run_s, std::exp(12));
    if (run_s < 600) ++short_ones;
  }
  EXPECT_NEAR(serial, 0.244 * kDraws, 0.015 * kDraws);
  // Those of the others that are one by chance are more.
  EXPECT_GT(powers, 0.56 * kDraws);
  EXPECT_LT(powers, 0.68 * kDraws);
  // Half of all run for less than 10 minutes, and more of the narrow ones.
  EXPECT_NEAR(short_ones, 0.69 * kDraws, 0.05 * kDraws);
}

TEST(LublinTest, FewComeAtNight) {
  LublinModel model(256);
  Random random(3);
  std::map<int, int> by_hour;
  double before = 0;
  for (int i = 0; i < 50'000; ++i) {
    const double at = model.NextArrival(&random);
    ASSERT_GE(at, before);
    before = at;
    ++by_hour[static_cast<int>(at / 3600) % 24];
  }
  EXPECT_GT(by_hour[14], 5 * by_hour[5]);
}

TEST(GeneratorTest, TheSameOptionsGiveTheSameJobsAndOthersGiveOthers) {
  GeneratorOptions options = Options(Requests::kModal);
  const trace::Trace first = Generate(options);
  EXPECT_EQ(first.jobs, Generate(options).jobs);
  options.seed = 2;
  EXPECT_NE(first.jobs, Generate(options).jobs);
}

TEST(GeneratorTest, WhoAsksForWhatMakesNoOtherJobs) {
  const trace::Trace modal = Generate(Options(Requests::kModal));
  const trace::Trace uniform = Generate(Options(Requests::kUniform));
  ASSERT_EQ(modal.jobs.size(), uniform.jobs.size());
  for (size_t i = 0; i < modal.jobs.size(); ++i) {
    TraceJob same = uniform.jobs[i];
    same.requested_s = modal.jobs[i].requested_s;
    ASSERT_EQ(same, modal.jobs[i]);
  }
}

TEST(GeneratorTest, TheLoadIsWhatWasAskedFor) {
  for (const double load : {0.5, 0.9, 1.2}) {
    GeneratorOptions options = Options(Requests::kExact);
    options.load = load;
    options.processors = 128;
    const trace::Trace trace = Generate(options);
    double work = 0;
    for (const TraceJob& job : trace.jobs) work += job.run_s * static_cast<double>(job.slots);
    EXPECT_EQ(trace.jobs.front().submit_s, 0);
    EXPECT_NEAR(work / (128 * trace.jobs.back().submit_s), load, 0.001);
  }
}

TEST(GeneratorTest, RequestsAreLongEnough) {
  for (const TraceJob& job : Generate(Options(Requests::kExact)).jobs) {
    ASSERT_EQ(job.requested_s, job.run_s);
  }
  for (const TraceJob& job : Generate(Options(Requests::kUniform)).jobs) {
    ASSERT_GE(job.requested_s, job.run_s);
    ASSERT_LE(job.requested_s, std::ceil(5 * job.run_s));
  }
  std::set<double> values;
  for (const TraceJob& job : Generate(Options(Requests::kModal)).jobs) {
    ASSERT_GE(job.requested_s, job.run_s);
    ASSERT_EQ(job.requested_s, static_cast<double>(ModalRequest(job.requested_s)));
    values.insert(job.requested_s);
  }
  EXPECT_LE(values.size(), 20U);
}

TEST(GeneratorTest, SomeAskForNothingAndSomeLie) {
  GeneratorOptions options = Options(Requests::kModal);
  options.without_request = 0.2;
  options.liars = 0.1;
  std::set<std::string> silent;
  std::set<std::string> liars;
  std::set<std::string> honest;
  for (const TraceJob& job : Generate(options).jobs) {
    auto& of = job.requested_s < 0 ? silent : job.requested_s < job.run_s ? liars : honest;
    of.insert(job.user);
    ASSERT_TRUE(job.requested_s == -1 || job.requested_s >= 1);
  }
  EXPECT_THAT(silent.size(), 10U);
  // A run of a second cannot be said shorter.
  EXPECT_THAT(liars.size(), 5U);
  for (const std::string& user : silent)
    EXPECT_FALSE(honest.contains(user) || liars.contains(user));
}

TEST(GeneratorTest, UsersRepeatThemselves) {
  // The last job of the same user and width ran about as long.
  std::map<std::pair<std::string, int64_t>, double> last;
  size_t repeated = 0;
  size_t alike = 0;
  for (const TraceJob& job : Generate(Options(Requests::kModal)).jobs) {
    const auto [known, is_new] = last.try_emplace({job.user, job.slots}, job.run_s);
    if (is_new) continue;
    ++repeated;
    const double ratio = job.run_s / known->second;
    if (ratio > 0.5 && ratio < 2) ++alike;
    known->second = job.run_s;
  }
  EXPECT_GT(repeated, 3000U);
  EXPECT_GT(alike, repeated * 6 / 10);
}

TEST(GeneratorTest, IsReadAgainAsItWasWritten) {
  GeneratorOptions options = Options(Requests::kModal);
  options.without_request = 0.2;
  const trace::Trace trace = Generate(options);
  const auto read = trace::ParseSwf(trace::FormatSwf(trace.jobs, "two\nlines"), {"test.swf"});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->jobs.size(), trace.jobs.size());
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    TraceJob job = read->jobs[i];
    job.line = 0;
    ASSERT_EQ(job, trace.jobs[i]);
  }
}

TEST(GeneratorTest, BadOptionsAreNamed) {
  const auto message_of = [](const auto& spoil) {
    GeneratorOptions options;
    spoil(&options);
    return Message(CheckGenerator(options));
  };
  EXPECT_EQ(message_of([](auto* o) { o->jobs = 0; }), "jobs is 0; allowed: 1 to 1000000");
  EXPECT_EQ(message_of([](auto* o) { o->processors = 1; }),
            "processors is 1; allowed: 2 to 1000000");
  EXPECT_EQ(message_of([](auto* o) { o->users = 10'001; }), "users is 10001; allowed: 1 to 10000");
  EXPECT_EQ(message_of([](auto* o) { o->load = std::nan(""); }),
            "load is nan; allowed: above 0, at most 2");
  EXPECT_EQ(message_of([](auto* o) { o->without_request = 1.5; }),
            "without-request is 1.5; allowed: 0 to 1");
  EXPECT_EQ(message_of([](auto* o) { o->liars = -0.1; }), "liars is -0.1; allowed: 0 to 1");
  EXPECT_EQ(Message(ParseRequests("guess").status()),
            "requests \"guess\" do not exist; allowed: exact, uniform, modal");
}

TEST(GeneratorTest, ModalRequests) {
  EXPECT_EQ(ModalRequest(0), 300);
  EXPECT_EQ(ModalRequest(300), 300);
  EXPECT_EQ(ModalRequest(301), 600);
  EXPECT_EQ(ModalRequest(3601), 7200);
  EXPECT_EQ(ModalRequest(48 * 3600 + 1), 72 * 3600);
}

TEST(GeneratorTest, SomeCrashSoonAndAskForWhatTheyWouldHaveRun) {
  GeneratorOptions options = Options(Requests::kExact);
  options.failures = 0.1;
  int failed = 0;
  int asked_for_more = 0;
  for (const TraceJob& job : Generate(options).jobs) {
    if (!job.failed) continue;
    ++failed;
    if (job.requested_s > job.run_s) ++asked_for_more;
    ASSERT_LE(job.run_s, 60);
  }
  EXPECT_NEAR(failed, 400, 60);
  EXPECT_GT(asked_for_more, failed / 2);
}

// Other draws follow where requests are others, so only the means can be compared.
TEST(GeneratorTest, RunTimesDrift) {
  GeneratorOptions options = Options(Requests::kExact);
  options.jobs = 20'000;
  const trace::Trace still = Generate(options);
  options.drift = 100;
  const trace::Trace drifts = Generate(options);
  const auto mean_log = [](const trace::Trace& trace, size_t quarter) {
    double sum = 0;
    for (size_t i = 0; i < 5000; ++i) sum += std::log(trace.jobs[quarter * 5000 + i].run_s) / 5000;
    return sum;
  };
  EXPECT_NEAR(mean_log(drifts, 0) - mean_log(still, 0), std::log(100) / 8, 0.8);
  EXPECT_NEAR(mean_log(drifts, 3) - mean_log(still, 3), std::log(100) * 7 / 8, 0.8);
}

TEST(GeneratorTest, OneUserSaysASecond) {
  GeneratorOptions options = Options(Requests::kExact);
  const trace::Trace honest = Generate(options);
  options.one_second_user = 2;
  const trace::Trace lies = Generate(options);
  for (size_t i = 0; i < honest.jobs.size(); ++i) {
    TraceJob job = honest.jobs[i];
    if (job.user == "2") job.requested_s = 1;
    ASSERT_EQ(job, lies.jobs[i]);
  }
}

TEST(GeneratorTest, GangsOfGpus) {
  trace::Trace trace = Generate(Options(Requests::kExact));
  const trace::Trace before = trace;
  MakeGpuGangs(8, &trace);
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const int64_t gpus = trace.jobs[i].slots * trace.jobs[i].requests.at("fluxqueue.io/gpu-milli");
    EXPECT_GE(gpus, 1000 * before.jobs[i].slots);
    EXPECT_LT(gpus, 1000 * (before.jobs[i].slots + 8));
    EXPECT_LE(trace.jobs[i].requests.at("fluxqueue.io/gpu-milli"), 8000);
  }
}

}  // namespace
}  // namespace fluxqueue::simulation
