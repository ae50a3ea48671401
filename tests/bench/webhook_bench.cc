// What a review costs: admission's webhook in a process of its own, over TLS on loopback; this
// process is the API server, both the one that it watches and the one that asks it.
//
// An open loop: reviews fall due at random, `--rate` a second, and a latency counts from when one
// was due, so that a stall shows in all that it delays. As the API server does, a review goes out
// on a kept connection that is idle; on a new one if there is none, up to `--connections`.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/check.h"
#include "libs/base/clock.h"
#include "libs/base/log.h"
#include "libs/kubernetes/client.h"
#include "libs/metrics/metrics.h"
#include "libs/tracing/tracer.h"
#include "services/admission/adapters/facts_cache.h"
#include "services/admission/adapters/webhook_server.h"
#include "services/admission/config.h"
#include "services/admission/metrics.h"
#include "tests/bench/report.h"
#include "tests/bench/webhook_cluster.h"

namespace fluxqueue::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using Clock = std::chrono::steady_clock;

struct Options {
  double rate = 2000;
  double seconds = 10;
  size_t connections = 16;
  bool mixture_only = false;
  std::string output = "table";
};

// A certificate of its own, in a folder that goes with it.
class TlsFolder {
 public:
  TlsFolder() {
    CHECK(mkdtemp(path_.data()) != nullptr);
    const std::string command = fmt::format(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
        "/CN=webhook -keyout {} -out {} 2>/dev/null",
        key(),
        certificate());
    CHECK(std::system(command.c_str()) == 0, "openssl made no certificate");
  }
  ~TlsFolder() { std::filesystem::remove_all(path_); }
  TlsFolder(const TlsFolder&) = delete;
  TlsFolder& operator=(const TlsFolder&) = delete;

  std::string certificate() const { return path_ + "/tls.crt"; }
  std::string key() const { return path_ + "/tls.key"; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "fluxqueue-bench-XXXXXX").string();
};

int ReadNumber(int from) {
  int number = 0;
  CHECK(::read(from, &number, sizeof(number)) == sizeof(number));
  return number;
}

void WriteNumber(int to, int number) {
  CHECK(::write(to, &number, sizeof(number)) == sizeof(number));
}

// Is told the API server's port, tells its own, and serves until it is killed.
[[noreturn]] void ServeUntilKilled(const TlsFolder& tls, int hear, int tell) {
  InitLog("bench", LogLevel::kWarning, LogFormat::kText);
  kubernetes::Client client({.server = fmt::format("http://127.0.0.1:{}", ReadNumber(hear))});
  metrics::Registry registry;
  admission::AdmissionMetrics metrics(registry);
  admission::FactsCache facts(client, metrics, [] {});
  CHECK(facts.Start().ok());
  const auto patience = Clock::now() + std::chrono::seconds(60);
  while (!facts.synced()) {
    CHECK(Clock::now() < patience, "{}", facts.Ready().ToString());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  admission::AdmissionConfig config;
  config.webhook.port = 0;
  config.webhook.certificate = tls.certificate();
  config.webhook.key = tls.key();
  tracing::Tracer tracer({}, registry);
  const RealClock clock;
  admission::WebhookServer server(admission::MakeServerOptions(config),
                                  admission::MakeWebhookOptions(config),
                                  facts,
                                  client,
                                  clock,
                                  metrics,
                                  tracer);
  const absl::Status started = server.Start();
  CHECK(started.ok(), "{}", started.ToString());
  WriteNumber(tell, server.port());
  while (true) ::pause();
}

// The webhook as a child process, which goes with this object.
class Webhook {
 public:
  Webhook() {
    int down[2];
    int up[2];
    CHECK(::pipe(down) == 0 && ::pipe(up) == 0);
    // Before there are threads.
    child_ = ::fork();
    CHECK(child_ >= 0);
    if (child_ == 0) ServeUntilKilled(tls_, down[0], up[1]);
    api_ = std::make_unique<ListingApi>();
    WriteNumber(down[1], api_->port());
    port_ = static_cast<uint16_t>(ReadNumber(up[0]));
  }
  ~Webhook() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  uint16_t port() const { return port_; }

  // Of all its threads.
  double CpuSeconds() const {
    clockid_t clock = 0;
    timespec time{};
    CHECK(clock_getcpuclockid(child_, &clock) == 0 && clock_gettime(clock, &time) == 0);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

 private:
  const TlsFolder tls_;
  pid_t child_ = -1;
  std::unique_ptr<ListingApi> api_;
  uint16_t port_ = 0;
};

struct Due {
  Clock::time_point at;
  const std::string* body = nullptr;
};

struct Figures {
  double seconds = 0;
  double cpu_us = 0;  // of the server, for each review
  std::vector<double> latency_ms;
  size_t most_connections = 0;
  size_t errors = 0;
  std::string first_error;
};

// The API server's side: connections that are kept, and what is due.
class Generator {
 public:
  Generator(uint16_t port, size_t connections) : port_(port), most_(connections) {
    tls_.set_verify_mode(asio::ssl::verify_none);
    // As Go chooses.
    CHECK(SSL_CTX_set_ciphersuites(tls_.native_handle(), "TLS_AES_128_GCM_SHA256") == 1);
  }
  ~Generator() { connections_.clear(); }

  // `bodies` in turn.
  Figures Run(const std::vector<const std::string*>& bodies, double rate, double seconds) {
    figures_ = {};
    next_ = 0;
    const auto begun = Clock::now();
    const auto until =
        begun + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    Clock::time_point due = begun;
    asio::steady_timer timer(io_);
    const auto advance = [&](const auto& self) -> void {
      const auto now = Clock::now();
      for (; due <= now && due < until; due += Gap(rate)) {
        waiting_.push_back({due, bodies[next_++ % bodies.size()]});
        Dispatch();
      }
      if (due >= until) return;
      timer.expires_at(due);
      timer.async_wait([&self](boost::system::error_code) { self(self); });
    };
    advance(advance);
    io_.restart();
    io_.run();
    figures_.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    figures_.most_connections = connections_.size();
    return std::move(figures_);
  }

 private:
  class Connection;

  Clock::duration Gap(double rate) {
    std::exponential_distribution<double> gap(rate);
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(gap(random_)));
  }

  void Dispatch();
  void Done(const Due& due, const std::string& error);

  const uint16_t port_;
  const size_t most_;
  asio::io_context io_;
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  std::mt19937_64 random_{1};
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;  // the one used last is at the end
  std::deque<Due> waiting_;
  size_t next_ = 0;
  Figures figures_;
};

// One review under way at most.
class Generator::Connection {
 public:
  explicit Connection(Generator& owner) : owner_(owner), stream_(owner.io_, owner.tls_) {}

  void Send(const Due& due) {
    due_ = due;
    request_ = fmt::format(
        "POST /mutate?timeout=5s HTTP/1.1\r\nHost: fluxqueue-admission.fluxqueue-system.svc:443\r\n"
        "User-Agent: kube-apiserver-admission\r\nContent-Length: {}\r\nAccept: application/json, "
        "*/*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n{}",
        due.body->size(),
        *due.body);
    connected_ ? Write() : Connect();
  }

 private:
  void Connect() {
    auto& socket = beast::get_lowest_layer(stream_).socket();
    boost::system::error_code error;
    socket.connect({asio::ip::make_address("127.0.0.1"), owner_.port_}, error);
    if (error) return owner_.Done(due_, error.message());
    socket.set_option(asio::ip::tcp::no_delay(true));
    stream_.async_handshake(asio::ssl::stream_base::client, [this](beast::error_code failed) {
      if (failed) return owner_.Done(due_, failed.message());
      connected_ = true;
      Write();
    });
  }

  void Write() {
    asio::async_write(stream_, asio::buffer(request_), [this](beast::error_code error, size_t) {
      if (error) return owner_.Done(due_, error.message());
      answer_ = {};
      bhttp::async_read(stream_, buffer_, answer_, [this](beast::error_code failed, size_t) {
        if (failed) return owner_.Done(due_, failed.message());
        const bool held = answer_.body().find(R"("patchType":"JSONPatch")") != std::string::npos;
        if (answer_.keep_alive()) owner_.idle_.push_back(this);
        owner_.Done(due_, held ? "" : answer_.body());
      });
    });
  }

  Generator& owner_;
  beast::ssl_stream<beast::tcp_stream> stream_;
  bool connected_ = false;
  Due due_;
  std::string request_;
  beast::flat_buffer buffer_;
  bhttp::response<bhttp::string_body> answer_;
};

void Generator::Dispatch() {
  while (!waiting_.empty()) {
    if (idle_.empty()) {
      if (connections_.size() >= most_) return;
      connections_.push_back(std::make_unique<Connection>(*this));
      idle_.push_back(connections_.back().get());
    }
    Connection* connection = idle_.back();
    idle_.pop_back();
    const Due due = waiting_.front();
    waiting_.pop_front();
    connection->Send(due);
  }
}

void Generator::Done(const Due& due, const std::string& error) {
  if (error.empty()) {
    figures_.latency_ms.push_back(
        std::chrono::duration<double, std::milli>(Clock::now() - due.at).count());
  } else if (figures_.errors++ == 0) {
    figures_.first_error = error;
  }
  Dispatch();
}

// Each kind as often as it has a share, well mixed.
std::vector<const std::string*> Mixture(const std::vector<ReviewKind>& kinds) {
  std::vector<const std::string*> bodies;
  for (const ReviewKind& kind : kinds) {
    for (int i = 0; i < 10 * kind.share; ++i) {
      bodies.push_back(&kind.bodies[static_cast<size_t>(i) % kind.bodies.size()]);
    }
  }
  std::shuffle(bodies.begin(), bodies.end(), std::mt19937_64(1));
  return bodies;
}

class Bench {
 public:
  Bench(const Options& options, Report* report)
      : options_(options), report_(report), generator_(webhook_.port(), options.connections) {}

  void Run() {
    const std::vector<ReviewKind> kinds = MakeReviews();
    report_->Section(
        fmt::format("reviews over TLS, two threads, up to {} connections", options_.connections),
        {"", "KB", "a second", "CPU, µs", "p50, ms", "p99", "p99.9"});
    Row("mixture", Mixture(kinds), options_.rate, options_.seconds);
    if (options_.mixture_only) return;
    for (const ReviewKind& kind : kinds) {
      std::vector<const std::string*> bodies;
      for (const std::string& body : kind.bodies) bodies.push_back(&body);
      Row(kind.what, bodies, options_.rate / (kind.share > 1 ? 1 : 10), options_.seconds / 4);
    }
  }

 private:
  void Row(const std::string& what,
           const std::vector<const std::string*>& bodies,
           double rate,
           double seconds) {
    constexpr double kWarmUp = 0.5;
    const Figures warm = generator_.Run(bodies, rate, kWarmUp);
    const double before = webhook_.CpuSeconds();
    const Figures figures = generator_.Run(bodies, rate, seconds);
    const double cpu = webhook_.CpuSeconds() - before;
    const auto answers = static_cast<double>(figures.latency_ms.size());
    for (const Figures& of : {std::cref(warm), std::cref(figures)}) {
      if (of.errors == 0) continue;
      report_->Problem(
          fmt::format("{}: {} failed, the first: {}", what, of.errors, of.first_error));
    }
    if (figures.latency_ms.empty()) return;
    double bytes = 0;
    for (const std::string* body : bodies) bytes += static_cast<double>(body->size());
    const double cpu_us = 1e6 * cpu / answers;
    const Percentiles latency = PercentilesOf(figures.latency_ms);
    report_->Row({what,
                  Number(bytes / static_cast<double>(bodies.size()) / 1000),
                  Number(answers / figures.seconds),
                  Number(cpu_us),
                  Number(latency.p50),
                  Number(latency.p99),
                  Number(latency.p999)});
    report_->json()["reviews"][what] = {{"per_second", answers / figures.seconds},
                                        {"cpu_us", cpu_us},
                                        {"p50_ms", latency.p50},
                                        {"p99_ms", latency.p99},
                                        {"p999_ms", latency.p999},
                                        {"connections", figures.most_connections},
                                        {"errors", figures.errors}};
    if (what != "mixture") return;
    report_->Target("CPU of a review", cpu_us, false, 100, "µs");
    report_->Target(
        fmt::format("p99 at {} a second", Number(options_.rate)), latency.p99, false, 5, "ms");
  }

  const Options options_;
  Report* const report_;
  Webhook webhook_;
  Generator generator_;
};

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue::bench;
  Options options;
  CLI::App app("What a review of the webhook costs.", "fluxqueue-bench-webhook");
  app.add_option("--rate", options.rate, "Reviews a second")->check(CLI::Range(1.0, 100'000.0));
  app.add_option("--seconds", options.seconds)->check(CLI::Range(0.1, 600.0));
  app.add_option("--connections", options.connections, "At most")->check(CLI::Range(1, 1000));
  app.add_flag("--mixture", options.mixture_only, "Without a row for each kind");
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  fluxqueue::InitLog("bench", fluxqueue::LogLevel::kWarning, fluxqueue::LogFormat::kText);
  Report report("webhook");
  Bench(options, &report).Run();
  fmt::print("{}\n", options.output == "json" ? report.JsonText() : report.Table());
  return report.sound() ? 0 : 1;
}
