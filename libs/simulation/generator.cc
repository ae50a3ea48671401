#include "libs/simulation/generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/simulation/lublin.h"

namespace fluxqueue::simulation {
namespace {

constexpr int64_t kMostJobs = 1'000'000;
constexpr int64_t kMostProcessors = 1'000'000;
constexpr int64_t kMostUsers = 10'000;
constexpr double kMostLoad = 2;
constexpr double kMostDrift = 100;

constexpr int64_t kMinute = 60;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;
// Most requests of real logs are one of a few round values (Tsafrir, Etsion and Feitelson,
// "Modeling User Runtime Estimates", JSSPP 2005).
constexpr std::array<int64_t, 15> kModal = {5 * kMinute,
                                            10 * kMinute,
                                            15 * kMinute,
                                            30 * kMinute,
                                            kHour,
                                            2 * kHour,
                                            3 * kHour,
                                            4 * kHour,
                                            6 * kHour,
                                            8 * kHour,
                                            12 * kHour,
                                            18 * kHour,
                                            24 * kHour,
                                            36 * kHour,
                                            48 * kHour};

constexpr double kEndsSession = 1.0 / 10;  // after each job
constexpr double kComesBack = 0.5;         // to a job that the user has had before
constexpr size_t kRemembered = 5;          // of those
constexpr double kSpread = 0.25;           // of the logarithm of like jobs' run times
constexpr double kEndsEarly = 0.05;        // at any time of the run
constexpr double kLongestCrash = 60;       // s
constexpr double kNextModal = 0.6;         // a user takes the next value to be sure, and again
constexpr double kSure = 1.5;              // beside what the job mostly runs

// A job that is submitted again and again.
struct Habit {
  int64_t processors = 1;
  double run_s = 1;
  int64_t request_s = 0;  // modal
};

struct User {
  std::string name;
  bool asks = true;
  bool lies = false;
  bool says_a_second = false;
  std::vector<Habit> habits;
  size_t current = 0;
};

absl::Status CheckRange(std::string_view option, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument("{} is {}; allowed: {} to {}", option, value, least, most);
}

absl::Status CheckShare(std::string_view option, double value) {
  if (value >= 0 && value <= 1) return absl::OkStatus();
  return InvalidArgument("{} is {}; allowed: 0 to 1", option, value);
}

class Generator {
 public:
  explicit Generator(const GeneratorOptions& options)
      : options_(options), random_(options.seed), model_(options.processors) {
    const auto users = static_cast<size_t>(options.users);
    const auto of_users = [users](double share) {
      return static_cast<size_t>(std::llround(share * static_cast<double>(users)));
    };
    users_.resize(users);
    std::vector<size_t> order(users);
    double weight = 0;
    for (size_t i = 0; i < users; ++i) {
      users_[i].name = fmt::format("{}", i + 1);
      order[i] = i;
      weight += 1 / static_cast<double>(i + 1);
      weights_.push_back(weight);
    }
    // Neither those who submit most nor those who submit least.
    for (size_t i = users; i > 1; --i) std::swap(order[i - 1], order[random_.Index(i)]);
    const size_t silent = of_users(options.without_request);
    const size_t liars = std::min(of_users(options.liars), users - silent);
    if (options.one_second_user > 0) {
      users_[static_cast<size_t>(options.one_second_user) - 1].says_a_second = true;
    }
    for (size_t i = 0; i < silent; ++i) users_[order[i]].asks = false;
    for (size_t i = 0; i < liars; ++i) users_[order[silent + i]].lies = true;
  }

  trace::Trace Make() {
    trace::Trace trace;
    std::vector<double> arrivals;
    double work = 0;
    for (int64_t i = 0; i < options_.jobs; ++i) {
      arrivals.push_back(model_.NextArrival(&random_));
      trace.jobs.push_back(MakeJob(i + 1));
      work += trace.jobs.back().run_s * static_cast<double>(trace.jobs.back().slots);
    }
    const double span_s = work / (options_.load * static_cast<double>(options_.processors));
    const double model_span_s = arrivals.back() - arrivals.front();
    const double stretch = model_span_s > 0 ? span_s / model_span_s : 0;
    for (size_t i = 0; i < arrivals.size(); ++i) {
      trace.jobs[i].submit_s = std::floor((arrivals[i] - arrivals.front()) * stretch);
    }
    return trace;
  }

 private:
  trace::TraceJob MakeJob(int64_t number) {
    const double drawn = random_.Uniform() * weights_.back();
    const auto at = std::upper_bound(weights_.begin(), weights_.end(), drawn) - weights_.begin();
    User& user = users_[std::min(static_cast<size_t>(at), users_.size() - 1)];
    drift_ =
        std::pow(options_.drift, static_cast<double>(number) / static_cast<double>(options_.jobs));
    const Habit& habit = NextHabit(&user);
    trace::TraceJob job;
    job.name = fmt::format("swf-{}", number);
    job.run_s = RunTime(habit);
    job.slots = habit.processors;
    job.requests = {{"cpu", 1000}};
    job.user = user.name;
    job.requested_s = Request(user, habit, job.run_s);
    if (options_.failures > 0 && random_.Chance(options_.failures)) {
      job.run_s = std::min(job.run_s, std::ceil(random_.Uniform(0, kLongestCrash)));
      job.failed = true;
    }
    return job;
  }

  const Habit& NextHabit(User* user) {
    if (!user->habits.empty() && !random_.Chance(kEndsSession)) return user->habits[user->current];
    if (!user->habits.empty() && random_.Chance(kComesBack)) {
      user->current = random_.Index(user->habits.size());
      return user->habits[user->current];
    }
    if (user->habits.size() == kRemembered) user->habits.erase(user->habits.begin());
    Habit habit;
    habit.processors = model_.Processors(&random_);
    habit.run_s = model_.RunTime(habit.processors, &random_);
    habit.request_s = ModalRequest(habit.run_s * drift_ * kSure);
    while (random_.Chance(kNextModal) && habit.request_s < kModal.back()) {
      habit.request_s = ModalRequest(static_cast<double>(habit.request_s + 1));
    }
    user->habits.push_back(habit);
    user->current = user->habits.size() - 1;
    return user->habits.back();
  }

  double RunTime(const Habit& habit) {
    double run_s = habit.run_s * drift_ * std::exp(kSpread * random_.Normal());
    if (random_.Chance(kEndsEarly)) run_s *= random_.Uniform();
    return std::max(1.0, std::round(run_s));
  }

  double Request(const User& user, const Habit& habit, double run_s) {
    // Drawn also where they are not used: users who differ in this only have the same jobs.
    const double factor = random_.Uniform(1, 5);
    const double lie = random_.Uniform(0.05, 0.5);
    if (user.says_a_second) return 1;
    if (!user.asks) return -1;
    if (user.lies) return std::max(1.0, std::floor(run_s * lie));
    switch (options_.requests) {
      case Requests::kExact:
        return run_s;
      case Requests::kUniform:
        return std::ceil(run_s * factor);
      case Requests::kModal:
        return static_cast<double>(std::max(habit.request_s, ModalRequest(run_s)));
    }
    return run_s;
  }

  const GeneratorOptions options_;
  Random random_;
  LublinModel model_;
  std::vector<User> users_;
  std::vector<double> weights_;  // of users, summed up
  double drift_ = 1;             // of the job that is made
};

}  // namespace

std::string_view Name(Requests requests) {
  switch (requests) {
    case Requests::kExact:
      return "exact";
    case Requests::kUniform:
      return "uniform";
    case Requests::kModal:
      return "modal";
  }
  return "";
}

absl::StatusOr<Requests> ParseRequests(std::string_view name) {
  for (const Requests known : {Requests::kExact, Requests::kUniform, Requests::kModal}) {
    if (name == Name(known)) return known;
  }
  return InvalidArgument("requests \"{}\" do not exist; allowed: exact, uniform, modal", name);
}

absl::Status CheckGenerator(const GeneratorOptions& options) {
  RETURN_IF_ERROR(CheckRange("jobs", options.jobs, 1, kMostJobs));
  RETURN_IF_ERROR(CheckRange("processors", options.processors, 2, kMostProcessors));
  RETURN_IF_ERROR(CheckRange("users", options.users, 1, kMostUsers));
  if (!(options.load > 0 && options.load <= kMostLoad)) {
    return InvalidArgument("load is {}; allowed: above 0, at most {}", options.load, kMostLoad);
  }
  RETURN_IF_ERROR(CheckShare("without-request", options.without_request));
  RETURN_IF_ERROR(CheckShare("liars", options.liars));
  RETURN_IF_ERROR(CheckShare("failures", options.failures));
  if (!(options.drift >= 1 / kMostDrift && options.drift <= kMostDrift)) {
    return InvalidArgument(
        "drift is {}; allowed: {} to {}", options.drift, 1 / kMostDrift, kMostDrift);
  }
  return CheckRange("one-second-user", options.one_second_user, 0, options.users);
}

trace::Trace Generate(const GeneratorOptions& options) {
  CHECK(CheckGenerator(options).ok());
  return Generator(options).Make();
}

void MakeGpuGangs(int64_t gpus_of_node, trace::Trace* trace) {
  for (trace::TraceJob& job : trace->jobs) {
    const int64_t gpus = std::min(job.slots, gpus_of_node);
    job.slots = (job.slots + gpus_of_node - 1) / gpus_of_node;
    job.requests = {{"cpu", gpus * kCpusOfGpu * 1000},
                    {std::string(trace::kGpuMilli), gpus * 1000}};
  }
}

int64_t ModalRequest(double seconds) {
  for (const int64_t value : kModal) {
    if (static_cast<double>(value) >= seconds) return value;
  }
  return static_cast<int64_t>(std::ceil(seconds / static_cast<double>(kDay))) * kDay;
}

}  // namespace fluxqueue::simulation
