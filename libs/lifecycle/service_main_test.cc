// ServiceMain in a child process, with real signals, real HTTP and its real exit code.
#include "libs/lifecycle/service_main.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/http/client.h"
#include "libs/lifecycle/loop_component.h"

namespace fluxqueue::lifecycle {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr auto kDeadline = 20s;

// A forked process that runs `body`; what it prints is read as it comes.
class Child {
 public:
  explicit Child(const std::function<int()>& body) {
    std::array<int, 2> fds{};
    if (::pipe(fds.data()) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(fds[1], STDOUT_FILENO);
      ::dup2(fds[1], STDERR_FILENO);
      ::close(fds[0]);
      ::close(fds[1]);
      const int code = body();
      std::fflush(stdout);
      std::_Exit(code);
    }
    ::close(fds[1]);
    out_ = fds[0];
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // True once `text` has been printed; false when the child ends or the deadline passes before.
  bool Prints(const std::string& text) {
    while (printed_.find(text) == std::string::npos) {
      if (!ReadMore()) return false;
    }
    return true;
  }
  void Signal(int number) const { ::kill(pid_, number); }

  // The exit code, or nothing when it was killed or does not end.
  std::optional<int> ExitCode() {
    while (ReadMore()) {
    }
    int status = 0;
    if (!ended_ || ::waitpid(pid_, &status, 0) != pid_) return std::nullopt;
    pid_ = -1;
    if (!WIFEXITED(status)) return std::nullopt;
    return WEXITSTATUS(status);
  }

  const std::string& printed() const { return printed_; }

 private:
  bool ReadMore() {
    pollfd fd{out_, POLLIN, 0};
    if (ended_ || ::poll(&fd, 1, static_cast<int>(Millis(kDeadline).count())) <= 0) return false;
    std::array<char, 4096> buffer{};
    const ssize_t n = ::read(out_, buffer.data(), buffer.size());
    ended_ = n <= 0;
    if (n > 0) printed_.append(buffer.data(), static_cast<size_t>(n));
    return n > 0;
  }

  pid_t pid_ = -1;
  int out_ = -1;
  bool ended_ = false;
  std::string printed_;
};

// Prints when it starts and stops; scripted to be bad at either.
class LoudComponent final : public Component {
 public:
  LoudComponent(std::string name, absl::Status start, bool hangs)
      : name_(std::move(name)), start_(std::move(start)), hangs_(hangs) {}
  const std::string& name() const override { return name_; }
  absl::Status Start() override {
    LogInfo("start", {{"component", name_}});
    return start_;
  }
  void Stop() override {
    LogInfo("stop", {{"component", name_}});
    while (hangs_) ::pause();
  }
  absl::Status Ready() const override { return absl::OkStatus(); }

 private:
  std::string name_;
  absl::Status start_;
  bool hangs_;
};

class TestApp final : public App {
 public:
  void Add(std::unique_ptr<Component> component) { components_.push_back(std::move(component)); }
  void AddLoud(std::string name, absl::Status start = absl::OkStatus(), bool hangs = false) {
    Add(std::make_unique<LoudComponent>(std::move(name), std::move(start), hangs));
  }
  std::vector<Component*> Components() override {
    std::vector<Component*> all;
    for (const auto& component : components_) all.push_back(component.get());
    return all;
  }

 private:
  std::vector<std::unique_ptr<Component>> components_;
};

absl::Status PrepareNothing(const config::ServiceConfig& /*config*/, std::stop_token /*stop*/) {
  LogInfo("prepare");
  return absl::OkStatus();
}

// Waits for what never comes.
absl::Status WaitForEver(const config::ServiceConfig& /*config*/, std::stop_token stop) {
  LogInfo("prepare");
  while (!stop.stop_requested()) std::this_thread::yield();
  return absl::CancelledError("stopped while waiting");
}

class ServiceMainTest : public ::testing::Test {
 protected:
  using Build = std::function<void(TestApp&, const AppContext&)>;

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "fluxqueue-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    WriteConfig("postgres: {dsn: x}\nkafka: {bootstrap: y}\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string ConfigPath() const { return folder_ / "probe.yaml"; }
  void WriteConfig(const std::string& text) const { std::ofstream(ConfigPath()) << text; }

  // ServiceMain's exit code, with the arguments given behind the program's name.
  static int Main(std::vector<std::string> arguments,
                  const Build& build,
                  Millis deadline = 20s,
                  const decltype(Service::prepare)& prepare = PrepareNothing) {
    arguments.insert(arguments.begin(), "fluxqueue-probe");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    int depth = 3;
    Service service;
    service.name = "probe";
    service.section = config::Section().Int("depth", &depth, 1, 10);
    service.stop_deadline = deadline;
    service.make_app = [&build](const AppContext& context) {
      auto app = std::make_unique<TestApp>();
      build(*app, context);
      return absl::StatusOr<std::unique_ptr<App>>(std::move(app));
    };
    service.prepare = prepare;
    return ServiceMain(static_cast<int>(argv.size()), argv.data(), service);
  }

  int RunService(const Build& build, Millis deadline = 20s) const {
    return Main({"--config", ConfigPath()}, build, deadline);
  }

  std::filesystem::path folder_;
};

TEST_F(ServiceMainTest, StartsInOrderAndStopsInReverse) {
  for (const int number : {SIGTERM, SIGINT}) {
    Child child([&] {
      return RunService([](TestApp& app, const AppContext&) {
        app.AddLoud("first");
        app.AddLoud("second");
      });
    });
    ASSERT_TRUE(child.Prints("| started")) << child.printed();
    child.Signal(number);
    EXPECT_EQ(child.ExitCode(), 0) << child.printed();
    std::string order;
    std::istringstream lines(child.printed());
    for (std::string line; std::getline(lines, line);) {
      const size_t event = line.find("| st");
      if (event != std::string::npos) order += line.substr(event + 2) + ";";
    }
    EXPECT_THAT(order, HasSubstr("start component=first;start component=second;started;"));
    EXPECT_THAT(order, EndsWith("stop component=second;stop component=first;stopped;"));
  }
}

TEST_F(ServiceMainTest, AFailureStopsTheProcessAndIsTheLastLine) {
  Child child([&] {
    return RunService([](TestApp& app, const AppContext& context) {
      app.AddLoud("first");
      app.Add(std::make_unique<LoopComponent>(
          "queue loop",
          [](LoopContext&) { return absl::DataLossError("offset 7 is gone"); },
          nullptr,
          context.failures));
    });
  });
  EXPECT_EQ(child.ExitCode(), 1);
  EXPECT_THAT(child.printed(), HasSubstr("stop component=first"));
  EXPECT_THAT(child.printed(),
              EndsWith("ended with a failure reason=\"queue loop: offset 7 is gone\"\n"));
}

TEST_F(ServiceMainTest, AComponentThatCannotStartStopsThoseBeforeIt) {
  Child child([&] {
    return RunService([](TestApp& app, const AppContext&) {
      app.AddLoud("first");
      app.AddLoud("webhook", InvalidArgument("cert.pem: no such file"));
      app.AddLoud("third");
    });
  });
  EXPECT_EQ(child.ExitCode(), 1);
  EXPECT_THAT(child.printed(), HasSubstr("stop component=first"));
  EXPECT_THAT(child.printed(), ::testing::Not(HasSubstr("component=third")));
  EXPECT_THAT(child.printed(), EndsWith("reason=\"webhook: start: cert.pem: no such file\"\n"));
}

TEST_F(ServiceMainTest, ASecondSignalEndsAtOnce) {
  Child child([&] {
    return RunService([](TestApp& app, const AppContext&) { app.AddLoud("stuck", {}, true); });
  });
  ASSERT_TRUE(child.Prints("| started")) << child.printed();
  child.Signal(SIGTERM);
  ASSERT_TRUE(child.Prints("stop component=stuck"));
  child.Signal(SIGINT);
  EXPECT_EQ(child.ExitCode(), 1);
  EXPECT_THAT(child.printed(), HasSubstr("second signal, ending at once signal=SIGINT"));
}

TEST_F(ServiceMainTest, StoppingHasADeadline) {
  Child child([&] {
    return RunService([](TestApp& app, const AppContext&) { app.AddLoud("stuck", {}, true); },
                      Millis(50));
  });
  ASSERT_TRUE(child.Prints("| started")) << child.printed();
  child.Signal(SIGTERM);
  EXPECT_EQ(child.ExitCode(), 1);
  EXPECT_THAT(child.printed(),
              HasSubstr("did not stop in time, ending component=stuck deadline=50ms"));
}

class EndpointTest : public ServiceMainTest {
 protected:
  // The port that the child's log names; 0 when it does not.
  static int PortOf(Child& child) {
    const std::string mark = "address=127.0.0.1:";
    if (!child.Prints("| started")) return 0;
    const size_t at = child.printed().find(mark);
    return at == std::string::npos ? 0 : std::stoi(child.printed().substr(at + mark.size()));
  }
};

// Never ready.
void WaitForBroker(TestApp& app, const AppContext& context) {
  app.Add(std::make_unique<LoopComponent>(
      "pool log",
      [](LoopContext& loop) {
        return loop.Retry("connect", [] { return Unavailable("127.0.0.1:1: refused"); });
      },
      nullptr,
      context.failures));
}

TEST_F(EndpointTest, ServesHealthAndMetricsWhileItWaits) {
  Child child([&] {
    return RunService([](TestApp& app, const AppContext& context) {
      context.metrics.MakeCounter("probe_total", "Probes.").Add(3);
      WaitForBroker(app, context);
    });
  });
  const int port = PortOf(child);
  ASSERT_NE(port, 0) << child.printed();
  ASSERT_TRUE(child.Prints("| waiting")) << child.printed();

  http::ClientOptions options;
  options.base_url = fmt::format("http://127.0.0.1:{}", port);
  http::Client client(std::move(options));
  const auto get = [&](const std::string& path) {
    http::ClientRequest request;
    request.target = path;
    return client.Do(request);
  };
  const auto live = get("/livez");
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_EQ(live->status, 200);
  const auto ready = get("/readyz");
  ASSERT_TRUE(ready.ok()) << ready.status();
  EXPECT_EQ(ready->status, 503);
  EXPECT_EQ(ready->body, "pool log: connect: 127.0.0.1:1: refused\n");
  const auto metrics = get("/metrics");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_THAT(metrics->body, HasSubstr("probe_total 3\n"));
  EXPECT_THAT(metrics->body, HasSubstr("process_resident_memory_bytes "));
  EXPECT_THAT(metrics->body, HasSubstr("fluxqueue_build_info{component=\"probe\""));

  child.Signal(SIGTERM);
  EXPECT_EQ(child.ExitCode(), 0) << child.printed();
}

TEST_F(EndpointTest, WhatHangsIsToBeStartedAnew) {
  Child child([&] {
    return RunService([](TestApp& app, const AppContext& context) {
      app.Add(std::make_unique<LoopComponent>(
          "pool loop",
          [](LoopContext& loop) {
            while (loop.SleepFor(1h)) {
            }
            return absl::OkStatus();
          },
          nullptr,
          context.failures,
          [] { return Unavailable("has not got on for 312 s: it hangs"); }));
    });
  });
  const int port = PortOf(child);
  ASSERT_NE(port, 0) << child.printed();
  http::ClientOptions options;
  options.base_url = fmt::format("http://127.0.0.1:{}", port);
  http::Client client(std::move(options));
  http::ClientRequest request;
  request.target = "/livez";
  const auto live = client.Do(request);
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_EQ(live->status, 503);
  EXPECT_EQ(live->body, "pool loop: has not got on for 312 s: it hangs\n");
  EXPECT_TRUE(child.Prints("not alive")) << child.printed();
  child.Signal(SIGTERM);
  EXPECT_EQ(child.ExitCode(), 0) << child.printed();
}

TEST_F(EndpointTest, HealthAsksTheServiceThatRuns) {
  const auto health = [&](int port) {
    WriteConfig(fmt::format(
        "http: {{address: 0.0.0.0, port: {}}}\npostgres: {{dsn: x}}\nkafka: {{bootstrap: y}}\n",
        port));
    Child child([&] {
      return Main({"--config", ConfigPath(), "--health"},
                  [](TestApp&, const AppContext&) { std::abort(); });
    });
    const std::optional<int> code = child.ExitCode();
    return fmt::format("{} {}", code.value_or(-1), child.printed());
  };
  Child ready([&] { return RunService([](TestApp&, const AppContext&) {}); });
  const int port = PortOf(ready);
  EXPECT_EQ(health(port), "0 ok\n");
  ready.Signal(SIGTERM);
  EXPECT_EQ(ready.ExitCode(), 0) << ready.printed();
  EXPECT_THAT(health(port), ::testing::StartsWith("1 "));

  WriteConfig("postgres: {dsn: x}\nkafka: {bootstrap: y}\n");
  Child waiting([&] { return RunService(WaitForBroker); });
  const int waiting_port = PortOf(waiting);
  ASSERT_TRUE(waiting.Prints("| waiting")) << waiting.printed();
  EXPECT_EQ(health(waiting_port), "1 pool log: connect: 127.0.0.1:1: refused\n");
}

TEST_F(EndpointTest, APortInUseIsNamed) {
  Child first([&] { return RunService([](TestApp&, const AppContext&) {}); });
  const int port = PortOf(first);
  ASSERT_NE(port, 0) << first.printed();
  WriteConfig(
      fmt::format("http: {{port: {}}}\npostgres: {{dsn: x}}\nkafka: {{bootstrap: y}}\n", port));
  Child second([&] { return RunService([](TestApp&, const AppContext&) {}); });
  EXPECT_EQ(second.ExitCode(), 1);
  EXPECT_THAT(second.printed(), HasSubstr(fmt::format("{}", port)));
  EXPECT_THAT(second.printed(), HasSubstr("ended with a failure"));
}

TEST_F(ServiceMainTest, CheckConfigOnlyReads) {
  const Build never = [](TestApp&, const AppContext&) { std::abort(); };
  Child good([&] { return Main({"--config", ConfigPath(), "--check-config"}, never); });
  EXPECT_EQ(good.ExitCode(), 0);
  EXPECT_EQ(good.printed(), ConfigPath() + ": ok\n");

  WriteConfig("postgres: {dsn: x}\nkafka: {bootstrap: y}\nprobe: {depth: 11}\n");
  Child bad([&] { return Main({"--config", ConfigPath(), "--check-config"}, never); });
  EXPECT_EQ(bad.ExitCode(), 2);
  EXPECT_EQ(bad.printed(),
            ConfigPath() +
                ":3: probe.depth: \"11\" is not allowed; allowed: a whole "
                "number from 1 to 10\n");
}

TEST_F(ServiceMainTest, PrepareMakesNoApp) {
  const auto no_app = [](TestApp&, const AppContext&) { LogInfo("an app"); };
  Child done([&] { return Main({"--config", ConfigPath(), "--prepare"}, no_app); });
  EXPECT_EQ(done.ExitCode(), 0) << done.printed();
  EXPECT_THAT(done.printed(), HasSubstr("prepare"));
  EXPECT_THAT(done.printed(), ::testing::Not(HasSubstr("an app")));

  Child waits([&] {
    return Main({"--config", ConfigPath(), "--prepare"}, no_app, 20s, WaitForEver);
  });
  ASSERT_TRUE(waits.Prints("prepare"));
  waits.Signal(SIGTERM);
  EXPECT_EQ(waits.ExitCode(), 1) << waits.printed();
  EXPECT_THAT(waits.printed(), HasSubstr("stopped while waiting"));

  Child gives_up([&] {
    return Main({"--config", ConfigPath(), "--prepare", "--within", "1"}, no_app, 20s, WaitForEver);
  });
  EXPECT_EQ(gives_up.ExitCode(), 1) << gives_up.printed();
  EXPECT_THAT(gives_up.printed(), HasSubstr("stopped while waiting"));
}

TEST_F(ServiceMainTest, SaysWhatItMeasures) {
  Child child([&] {
    return Main({"--config", ConfigPath(), "--metrics"},
                [](TestApp& app, const AppContext& context) {
                  context.metrics.MakeCounters("probe_total", "Probes.", {"kind", "result"});
                  app.AddLoud("never started");
                });
  });
  EXPECT_EQ(child.ExitCode(), 0);
  EXPECT_THAT(child.printed(), HasSubstr("\nprobe_total\tcounter\tkind,result\tProbes.\n"));
  EXPECT_THAT(child.printed(), HasSubstr("process_resident_memory_bytes\tgauge\t\t"));
  EXPECT_THAT(child.printed(), ::testing::Not(HasSubstr("never started")));
}

TEST_F(ServiceMainTest, FollowsTheLogLevelOfItsFile) {
  Child child([&] {
    return RunService([](TestApp& app, const AppContext& context) {
      app.Add(std::make_unique<LoopComponent>(
          "chatter",
          [](LoopContext& loop) {
            while (loop.SleepFor(50ms)) LogDebug("chat");
            return absl::OkStatus();
          },
          nullptr,
          context.failures));
    });
  });
  ASSERT_TRUE(child.Prints("| started")) << child.printed();
  WriteConfig("log: {level: loud}\npostgres: {dsn: x}\nkafka: {bootstrap: y}\n");
  ASSERT_TRUE(child.Prints("log level not read")) << child.printed();
  EXPECT_THAT(child.printed(), ::testing::Not(HasSubstr("| chat")));
  WriteConfig("log: {level: debug}\npostgres: {dsn: x}\nkafka: {bootstrap: y}\n");
  ASSERT_TRUE(child.Prints("log level changed level=debug")) << child.printed();
  ASSERT_TRUE(child.Prints("| chat")) << child.printed();
  child.Signal(SIGTERM);
  EXPECT_EQ(child.ExitCode(), 0) << child.printed();
}

TEST_F(ServiceMainTest, TheCommandLineIsCheckedToo) {
  const Build never = [](TestApp&, const AppContext&) { std::abort(); };
  Child version([&] { return Main({"--version"}, never); });
  EXPECT_EQ(version.ExitCode(), 0);
  EXPECT_THAT(version.printed(), ::testing::StartsWith("fluxqueue-probe "));
  Child none([&] { return Main({}, never); });
  EXPECT_EQ(none.ExitCode(), 2);
  EXPECT_THAT(none.printed(), HasSubstr("--config is required"));
  Child unknown([&] { return Main({"--config", ConfigPath(), "--confg"}, never); });
  EXPECT_EQ(unknown.ExitCode(), 2);
  EXPECT_THAT(unknown.printed(), HasSubstr("--confg"));
  Child missing([&] { return Main({"--config", "/nonexistent.yaml"}, never); });
  EXPECT_EQ(missing.ExitCode(), 2);
  EXPECT_THAT(missing.printed(), HasSubstr("/nonexistent.yaml: cannot read the configuration"));
}

}  // namespace
}  // namespace fluxqueue::lifecycle
