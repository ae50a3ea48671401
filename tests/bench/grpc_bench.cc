// What a Match through gRPC costs: the matcher's API in a process of its own, on loopback, with a
// private graph; this process is its clients.
//
// First as fast as it goes: so many calls are under way, each followed by the next at once. Then an
// open loop at half that rate: calls begin when they are due, and a latency counts from there, so
// that a stall shows in all the calls that it delays. Nothing is given back: each phase has a graph
// of its own, with more cores than the phase takes jobs of one core.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "fluxion/fluxion.grpc.pb.h"
#include "fluxqueue/matcher/v1/matcher.grpc.pb.h"

#include "libs/base/check.h"
#include "libs/base/clock.h"
#include "libs/base/log.h"
#include "libs/graph/jgf_writer.h"
#include "libs/graph/synthetic_graphs.h"
#include "services/graph/rpc/graph_resolver.h"
#include "services/graph/rpc/graph_rpc.h"

namespace fluxqueue::bench {
namespace {

namespace v1 = matcher::v1;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr int kCores = 64;
constexpr int kGpus = 4;
constexpr size_t kNodesPerRack = 40;
constexpr const char* kFull = "the graph is full: fewer --seconds or more --nodes";
const char kJobspec[] = R"({"version": 1, "resources": [{"type": "node", "count": 1, "with": [
    {"type": "slot", "count": 1, "label": "task", "with": [{"type": "core", "count": 1}]}]}],
  "tasks": [], "attributes": {"system": {"duration": 3600}}})";

struct Options {
  int nodes = 10'000;
  int streams = 16;
  int connections = 4;
  int threads = 1;
  double seconds = 4;
  std::vector<std::string> methods = {"Match", "MatchStream", "fluxion.Match"};
  std::string output = "table";
};

std::string MakeGraph(int nodes) {
  const std::vector<graph::synthetic::NodeShape> shapes(static_cast<size_t>(nodes),
                                                        {kCores, kGpus, {}});
  const graph::ResourceGraph graph = graph::synthetic::MakeCluster(shapes, kNodesPerRack);
  graph::JgfWriter writer(graph);
  std::string text;
  for (std::string piece = writer.Next(1 << 20); !piece.empty(); piece = writer.Next(1 << 20)) {
    text += piece;
  }
  return text;
}

// Never returns: serves until it is killed, and tells its port first.
[[noreturn]] void ServeUntilKilled(int tell) {
  InitLog("bench", LogLevel::kWarning, LogFormat::kText);
  graph_service::RpcConfig config;
  config.grpc.port = 0;
  config.ancestors = true;
  config.grpc.max_message = int64_t{1} << 30;
  config.grpc.max_request = int64_t{1} << 30;
  config.grpc.max_memory = int64_t{4} << 30;
  config.private_graphs.graph_bytes = int64_t{1} << 30;
  config.private_graphs.vertices = int64_t{1} << 30;
  config.private_graphs.client_vertices = int64_t{1} << 30;
  config.calls = {
      .client_calls = 1 << 20, .client_bytes = int64_t{1} << 40, .bytes = int64_t{1} << 40};
  metrics::Registry metrics;
  tracing::Tracer tracer({}, metrics);
  const RealClock clock;
  const graph_service::GraphJudge judge(nullptr);
  graph_service::GraphRpc server(
      config, nullptr, judge, [] { return absl::OkStatus(); }, metrics, tracer, clock);
  CHECK(server.Start().ok());
  const int port = server.port();
  CHECK(::write(tell, &port, sizeof(port)) == sizeof(port));
  while (true) ::pause();
}

// The server as a child process, which goes with this object.
class Server {
 public:
  Server() {
    int ends[2];
    CHECK(::pipe(ends) == 0);
    child_ = ::fork();
    CHECK(child_ >= 0);
    if (child_ == 0) ServeUntilKilled(ends[1]);
    CHECK(::read(ends[0], &port_, sizeof(port_)) == sizeof(port_));
  }
  ~Server() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomChannel(
        fmt::format("127.0.0.1:{}", port_), grpc::InsecureChannelCredentials(), arguments);
  }

 private:
  pid_t child_ = -1;
  int port_ = 0;
};

// One call under way at a time.
class Caller {
 public:
  virtual ~Caller() = default;
  // Begins a call; `this` is the tag that its completions come with.
  virtual void Begin() = 0;
  // A completion has come; true when the call is done.
  virtual bool Advance(bool ok) = 0;
};

v1::MatchRequest Request() {
  v1::MatchRequest request;
  request.set_jobspec(kJobspec);
  request.set_format(v1::FORMAT_RLITE);
  return request;
}

class MatchCaller final : public Caller {
 public:
  MatchCaller(const std::shared_ptr<grpc::Channel>& channel,
              const std::string& key,
              grpc::CompletionQueue* queue)
      : stub_(v1::Matcher::NewStub(channel)), key_(key), queue_(queue), request_(Request()) {}

  void Begin() override {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->AddMetadata(graph_service::kGraphKey, key_);
    call_ = stub_->AsyncMatch(context_.get(), request_, queue_);
    call_->Finish(&response_, &status_, this);
  }
  bool Advance(bool ok) override {
    CHECK(ok && status_.ok(), "{}", status_.error_message());
    CHECK(response_.outcome() == v1::OUTCOME_ALLOCATED, "{}", kFull);
    return true;
  }

 private:
  const std::unique_ptr<v1::Matcher::Stub> stub_;
  const std::string key_;
  grpc::CompletionQueue* const queue_;
  const v1::MatchRequest request_;
  v1::MatchResponse response_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::MatchResponse>> call_;
};

class FluxionCaller final : public Caller {
 public:
  FluxionCaller(const std::shared_ptr<grpc::Channel>& channel,
                const std::string& key,
                grpc::CompletionQueue* queue)
      : stub_(::fluxion::FluxionService::NewStub(channel)), key_(key), queue_(queue) {
    request_.set_jobspec(kJobspec);
    request_.set_request("allocate");
  }

  void Begin() override {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->AddMetadata(graph_service::kGraphKey, key_);
    call_ = stub_->AsyncMatch(context_.get(), request_, queue_);
    call_->Finish(&response_, &status_, this);
  }
  bool Advance(bool ok) override {
    CHECK(ok && status_.ok(), "{}", status_.error_message());
    CHECK(response_.status() == ::fluxion::MatchResponse::MATCH_SUCCESS, "{}", kFull);
    return true;
  }

 private:
  const std::unique_ptr<::fluxion::FluxionService::Stub> stub_;
  const std::string key_;
  grpc::CompletionQueue* const queue_;
  ::fluxion::MatchRequest request_;
  ::fluxion::MatchResponse response_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<::fluxion::MatchResponse>> call_;
};

class StreamCaller final : public Caller {
 public:
  StreamCaller(const std::shared_ptr<grpc::Channel>& channel,
               const std::string& key,
               grpc::CompletionQueue* queue)
      : stub_(v1::Matcher::NewStub(channel)) {
    context_.AddMetadata(graph_service::kGraphKey, key);
    *request_.mutable_match() = Request();
    stream_ = stub_->AsyncMatchStream(&context_, queue, this);
    void* tag = nullptr;
    bool ok = false;
    CHECK(queue->Next(&tag, &ok) && ok && tag == this);
  }

  void Begin() override {
    steps_ = 0;
    request_.set_tag(request_.tag() + 1);
    stream_->Write(request_, this);
    stream_->Read(&response_, this);
  }
  bool Advance(bool ok) override {
    CHECK(ok);
    // The write and the read are done, in either order.
    if (++steps_ < 2) return false;
    CHECK(response_.tag() == request_.tag());
    CHECK(response_.match().outcome() == v1::OUTCOME_ALLOCATED, "{}", kFull);
    return true;
  }

 private:
  const std::unique_ptr<v1::Matcher::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::MatchStreamRequest, v1::MatchStreamResponse>>
      stream_;
  v1::MatchStreamRequest request_;
  v1::MatchStreamResponse response_;
  int steps_ = 0;
};

struct Result {
  std::string method;
  std::string loop;
  double rate = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
  size_t calls = 0;
};

Result Summary(std::string method, std::string loop, std::vector<double> took, double seconds) {
  CHECK(!took.empty());
  std::sort(took.begin(), took.end());
  const auto calls = static_cast<double>(took.size());
  const auto at = [&took, calls](double share) {
    return 1e3 * took[std::min(took.size() - 1, static_cast<size_t>(share * calls))];
  };
  return {.method = std::move(method),
          .loop = std::move(loop),
          .rate = calls / seconds,
          .p50_ms = at(0.5),
          .p99_ms = at(0.99),
          .max_ms = 1e3 * took.back(),
          .calls = took.size()};
}

double Seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// Some of the streams, on a thread of its own.
class Worker {
 public:
  Worker(const std::string& method,
         const std::vector<std::shared_ptr<grpc::Channel>>& channels,
         const std::string& key,
         int streams) {
    for (int i = 0; i < streams; ++i) {
      const auto& channel = channels[static_cast<size_t>(i) % channels.size()];
      if (method == "Match") {
        callers_.push_back(std::make_unique<MatchCaller>(channel, key, &queue_));
      } else if (method == "MatchStream") {
        callers_.push_back(std::make_unique<StreamCaller>(channel, key, &queue_));
      } else {
        callers_.push_back(std::make_unique<FluxionCaller>(channel, key, &queue_));
      }
    }
  }

  // Each call is followed by the next at once.
  void RunClosed(double seconds) {
    const auto begun = Clock::now();
    for (const auto& caller : callers_) Start(caller.get(), Clock::now());
    while (under_way_ > 0) {
      Caller* done = Wait(gpr_inf_future(GPR_CLOCK_MONOTONIC));
      if (done != nullptr && Seconds(Clock::now() - begun) < seconds) Start(done, Clock::now());
    }
  }

  // Calls begin when they are due, `interval` apart; one that finds no stream free waits for one.
  void RunOpen(double seconds, Clock::duration interval, Clock::time_point first) {
    std::vector<Caller*> free;
    for (const auto& caller : callers_) free.push_back(caller.get());
    Clock::time_point due = first;
    const auto end =
        first + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    while (due < end || under_way_ > 0) {
      while (due < end && due <= Clock::now() && !free.empty()) {
        Start(free.back(), due);
        free.pop_back();
        due += interval;
      }
      const bool waits_for_time = due < end && !free.empty();
      Caller* done =
          Wait(waits_for_time ? After(due - Clock::now()) : gpr_inf_future(GPR_CLOCK_MONOTONIC));
      if (done != nullptr) free.push_back(done);
    }
  }

  const std::vector<double>& took() const { return took_; }

 private:
  static gpr_timespec After(Clock::duration wait) {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(wait).count();
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_nanos(std::max<int64_t>(ns, 0), GPR_TIMESPAN));
  }

  void Start(Caller* caller, Clock::time_point due) {
    begun_[caller] = due;
    ++under_way_;
    caller->Begin();
  }

  // The caller whose call is done; null when none is by then.
  Caller* Wait(gpr_timespec until) {
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return nullptr;
    auto* caller = static_cast<Caller*>(tag);
    if (!caller->Advance(ok)) return nullptr;
    took_.push_back(Seconds(Clock::now() - begun_[caller]));
    --under_way_;
    return caller;
  }

  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::unordered_map<Caller*, Clock::time_point> begun_;
  std::vector<double> took_;
  int under_way_ = 0;
};

class Bench {
 public:
  Bench(const Options& options, const Server& server)
      : options_(options), graph_(MakeGraph(options.nodes)) {
    for (int i = 0; i < options.connections; ++i) channels_.push_back(server.Connect());
  }

  std::vector<Result> Run() {
    std::vector<Result> results;
    for (const std::string& method : options_.methods) {
      const Result full = Phase(method, 0);
      results.push_back(full);
      results.push_back(Phase(method, full.rate / 2));
    }
    return results;
  }

 private:
  std::string CreateGraph() {
    v1::CreateGraphRequest request;
    request.set_graph(graph_);
    request.set_policy("low");
    v1::CreateGraphResponse response;
    grpc::ClientContext context;
    const auto status =
        v1::Matcher::NewStub(channels_[0])->CreateGraph(&context, request, &response);
    CHECK(status.ok(), "{}", status.error_message());
    return response.key();
  }

  void DeleteGraph(const std::string& key) {
    v1::DeleteGraphResponse response;
    grpc::ClientContext context;
    context.AddMetadata(graph_service::kGraphKey, key);
    CHECK(v1::Matcher::NewStub(channels_[0])->DeleteGraph(&context, {}, &response).ok());
  }

  // `rate`: of an open loop; 0: as fast as it goes.
  Result Phase(const std::string& method, double rate) {
    const std::string key = CreateGraph();
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < options_.threads; ++i) {
      workers.push_back(
          std::make_unique<Worker>(method, channels_, key, options_.streams / options_.threads));
    }
    const auto first = Clock::now() + std::chrono::milliseconds(10);
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < workers.size(); ++i) {
        threads.emplace_back([&, i] {
          if (rate == 0) {
            workers[i]->RunClosed(options_.seconds);
            return;
          }
          const std::chrono::duration<double> apart(static_cast<double>(workers.size()) / rate);
          const auto interval = std::chrono::duration_cast<Clock::duration>(apart);
          workers[i]->RunOpen(
              options_.seconds, interval, first + interval * i / static_cast<int>(workers.size()));
        });
      }
    }
    const double seconds = Seconds(Clock::now() - first);
    std::vector<double> took;
    for (const auto& worker : workers) {
      took.insert(took.end(), worker->took().begin(), worker->took().end());
    }
    workers.clear();
    DeleteGraph(key);
    return Summary(method, rate == 0 ? "full" : "half", std::move(took), seconds);
  }

  const Options options_;
  const std::string graph_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
};

void Print(const Options& options, const std::vector<Result>& results) {
  if (options.output == "json") {
    json rows = json::array();
    for (const Result& result : results) {
      rows.push_back({{"method", result.method},
                      {"rate", result.loop},
                      {"calls_per_second", result.rate},
                      {"p50_ms", result.p50_ms},
                      {"p99_ms", result.p99_ms},
                      {"max_ms", result.max_ms},
                      {"calls", result.calls}});
    }
    fmt::print(
        "{}\n",
        json({{"nodes", options.nodes}, {"streams", options.streams}, {"rows", rows}}).dump(2));
    return;
  }
  fmt::print(
      "{} nodes of {} cores and {} gpus, jobs of one core, policy low, {} calls under way on "
      "{} connections;\nnothing is given back, each row has a graph of its own. Target: "
      "20000 calls/s, and p99 below 5 ms at half the rate.\n\n",
      options.nodes,
      kCores,
      kGpus,
      options.streams,
      options.connections);
  fmt::print("{:<14} {:<5} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
             "method",
             "rate",
             "calls/s",
             "p50 ms",
             "p99 ms",
             "max ms",
             "calls");
  for (const Result& result : results) {
    fmt::print("{:<14} {:<5} {:>9.0f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9}\n",
               result.method,
               result.loop,
               result.rate,
               result.p50_ms,
               result.p99_ms,
               result.max_ms,
               result.calls);
  }
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Match calls through gRPC");
  app.add_option("--nodes", options.nodes)->check(CLI::Range(1, 100'000));
  app.add_option("--streams", options.streams, "calls under way")->check(CLI::Range(1, 1024));
  app.add_option("--connections", options.connections)->check(CLI::Range(1, 64));
  app.add_option("--threads", options.threads, "of the client")->check(CLI::Range(1, 64));
  app.add_option("--seconds", options.seconds, "of each row")->check(CLI::Range(0.1, 60.0));
  app.add_option("--methods", options.methods)
      ->delimiter(',')
      ->check(CLI::IsMember({"Match", "MatchStream", "fluxion.Match"}));
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  // Before gRPC has any thread here.
  const Server server;
  Print(options, Bench(options, server).Run());
  return 0;
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  return fluxqueue::bench::Main(argc, argv);
}
