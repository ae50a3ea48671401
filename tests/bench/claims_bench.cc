// Matches on the cluster's graph by gRPC: each is a claim in the queue, goes through the pool's log
// to the matcher and back, and is released then.
//
// So many calls are under way; each client's next one begins when its last was released. What fits
// is a matter of the nodes: there must be a core for each client.
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "fluxqueue/matcher/v1/matcher.grpc.pb.h"

#include "tests/bench/await.h"
#include "tests/bench/report.h"

namespace fluxqueue::bench {
namespace {

namespace v1 = matcher::v1;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::milliseconds kLook{100};
constexpr double kWantedLoneMs = 30;
const char kJobspec[] = R"({"version": 1, "resources": [{"type": "slot", "count": 1, "label": "s",
    "with": [{"type": "cpu", "count": 1000}]}],
  "tasks": [{"command": ["x"], "slot": "s", "count": {"per_slot": 1}}],
  "attributes": {"system": {"duration": 3600}}})";

struct Options {
  std::string address;
  int clients = 1024;
  double seconds = 10;
  std::string output = "table";
};

struct Figures {
  std::mutex mutex;
  std::vector<double> match_ms;  // guarded by mutex, as what follows
  std::vector<double> release_ms;
  std::string problem;
};

double MillisOf(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// One client: a match, its release, and again, until its time is over.
class Client {
 public:
  Client(const std::shared_ptr<grpc::Channel>& channel, Clock::time_point until, Figures* figures)
      : stub_(v1::Matcher::NewStub(channel)), until_(until), figures_(figures) {
    match_.set_jobspec(kJobspec);
    match_.set_explain(true);
  }

  // The pool is known and its nodes are; what is in the way after kPatience is a problem.
  void AwaitPool() {
    v1::ReleaseRequest release;
    std::string why_not;
    const auto matches = [&] {
      grpc::ClientContext context;
      v1::MatchResponse matched;
      const grpc::Status status = stub_->Match(&context, match_, &matched);
      why_not = status.ok() ? matched.reason() : status.error_message();
      const bool held = status.ok() && matched.outcome() == v1::OUTCOME_ALLOCATED;
      if (held) release.set_job_id(matched.job_id());
      return held;
    };
    if (const auto ready = Await(kPatience, kLook, matches); !ready.ok() || !*ready) {
      return Fail(why_not);
    }
    grpc::ClientContext context;
    v1::ReleaseResponse released;
    const grpc::Status over = stub_->Release(&context, release, &released);
    if (!over.ok()) Fail(over.error_message());
  }

  void Run() {
    while (Clock::now() < until_) {
      const auto begun = Clock::now();
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kPatience);
      v1::MatchResponse matched;
      const grpc::Status status = stub_->Match(&context, match_, &matched);
      const auto held = Clock::now();
      if (!status.ok()) return Fail(status.error_message());
      if (matched.outcome() != v1::OUTCOME_ALLOCATED) return Fail(matched.reason());
      grpc::ClientContext releasing;
      releasing.set_deadline(std::chrono::system_clock::now() + kPatience);
      v1::ReleaseRequest release;
      release.set_job_id(matched.job_id());
      v1::ReleaseResponse released;
      const grpc::Status over = stub_->Release(&releasing, release, &released);
      if (!over.ok()) return Fail(over.error_message());
      const std::lock_guard lock(figures_->mutex);
      figures_->match_ms.push_back(MillisOf(held - begun));
      figures_->release_ms.push_back(MillisOf(Clock::now() - held));
    }
  }

 private:
  void Fail(const std::string& problem) {
    const std::lock_guard lock(figures_->mutex);
    figures_->problem = problem;
  }

  const std::unique_ptr<v1::Matcher::Stub> stub_;
  const Clock::time_point until_;
  Figures* const figures_;
  v1::MatchRequest match_;
};

void Run(const Options& options, Report* report) {
  constexpr int kConnections = 4;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < kConnections; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels.push_back(
        grpc::CreateCustomChannel(options.address, grpc::InsecureChannelCredentials(), arguments));
  }
  Figures figures;
  Client(channels.front(), {}, &figures).AwaitPool();
  const auto begun = Clock::now();
  const auto until = begun + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(options.seconds));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.clients; ++i) {
      threads.emplace_back([&, i] {
        Client(channels[static_cast<size_t>(i) % channels.size()], until, &figures).Run();
      });
    }
  }
  const double seconds = MillisOf(Clock::now() - begun) / 1000;
  if (!figures.problem.empty()) report->Problem(figures.problem);
  const double rate = static_cast<double>(figures.match_ms.size()) / seconds;
  const Percentiles match = PercentilesOf(figures.match_ms);
  const Percentiles release = PercentilesOf(figures.release_ms);
  report->Section(fmt::format("matches on the cluster's graph, {} clients", options.clients),
                  {"", "a second", "p50, ms", "p99"});
  report->Row({"Match", Number(rate), Number(match.p50), Number(match.p99)});
  report->Row({"Release", Number(rate), Number(release.p50), Number(release.p99)});
  report->json()["cluster"] = {{"clients", options.clients},
                               {"matches_per_second", rate},
                               {"match_p50_ms", match.p50},
                               {"match_p99_ms", match.p99},
                               {"release_p50_ms", release.p50},
                               {"release_p99_ms", release.p99}};
  if (options.clients == 1) {
    report->Target("a match for a lone client, p50", match.p50, false, kWantedLoneMs, "ms");
  } else {
    report->Target("matches on the cluster's graph, each with its release", rate, true, 1000, "/s");
  }
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue::bench;
  Options options;
  CLI::App app("What a match through the pool's log costs.", "fluxqueue-bench-claims");
  app.add_option("--address", options.address, "Of a matcher's API")->required();
  app.add_option("--clients", options.clients, "Calls under way")->check(CLI::Range(1, 4096));
  app.add_option("--seconds", options.seconds)->check(CLI::Range(0.1, 600.0));
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  Report report("claims");
  Run(options, &report);
  fmt::print("{}\n", options.output == "json" ? report.JsonText() : report.Table());
  return report.sound() ? 0 : 1;
}
