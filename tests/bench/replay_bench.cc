// How fast `fluxqueue replay --file` goes through a log, and what it holds in memory meanwhile:
// lines alone, decoded, through the cores, and with each decision and each fact compared. Each is a
// process of its own, so that the memory is its own.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/check.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "tests/bench/replay_log.h"
#include "tests/bench/report.h"

#include "tools/fluxqueue/event_source.h"
#include "tools/fluxqueue/gzip_file.h"
#include "tools/fluxqueue/pool_replay.h"

namespace fluxqueue::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWantedDecoded = 200'000;

struct Options {
  uint64_t events = 200'000;
  std::string file{};
  bool keep = false;
  std::string output = "table";
};

struct Figures {
  uint64_t events = 0;
  double seconds = 0;
  uint64_t different = 0;  // decisions that are not as recorded
  double mib = 0;          // at the most
};

absl::StatusOr<Figures> Unpack(const std::string& file) {
  Figures figures;
  RETURN_IF_ERROR(cli::ReadGzipLines(file, [&](std::string_view) {
    ++figures.events;
    return absl::OkStatus();
  }));
  --figures.events;  // the header
  return figures;
}

absl::StatusOr<Figures> Decode(const std::string& file) {
  Figures figures;
  const auto source = cli::EventsOfFile(file);
  RETURN_IF_ERROR(source->Read([&](const verify::EventLine&) {
    ++figures.events;
    return absl::OkStatus();
  }));
  return figures;
}

absl::StatusOr<Figures> Replay(const std::string& file, bool compares_facts) {
  const auto source = cli::EventsOfFile(file);
  cli::PoolReplay replay(*source, {.compares_facts = compares_facts});
  RETURN_IF_ERROR(replay.Run());
  const verify::PoolReplay result = replay.Result();
  return Figures{.events = result.records, .different = result.total.different()};
}

// In a process of its own, whose peak is told by the kernel.
absl::StatusOr<Figures> Apart(const std::function<absl::StatusOr<Figures>()>& run) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const auto begun = Clock::now();
    absl::StatusOr<Figures> figures = run();
    if (!figures.ok()) fmt::print(stderr, "{}\n", Message(figures.status()));
    if (!figures.ok()) _exit(1);
    figures->seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    _exit(write(ends[1], &*figures, sizeof(Figures)) == sizeof(Figures) ? 0 : 1);
  }
  close(ends[1]);
  Figures figures;
  const ssize_t got = read(ends[0], &figures, sizeof(figures));
  close(ends[0]);
  rusage usage{};
  int status = 0;
  CHECK(wait4(child, &status, 0, &usage) == child);
  if (got != sizeof(figures)) return MakeStatus(absl::StatusCode::kInternal, "it has failed");
  figures.mib = static_cast<double>(usage.ru_maxrss) / 1024;
  return figures;
}

absl::Status Measure(const std::string& file, Report* report) {
  report->Section(fmt::format("a log of {} MB",
                              Number(static_cast<double>(std::filesystem::file_size(file)) / 1e6)),
                  {"of each event", "events", "events/s", "peak, MiB"});
  const std::pair<const char*, std::function<absl::StatusOr<Figures>()>> parts[] = {
      {"unpacked", [&] { return Unpack(file); }},
      {"decoded", [&] { return Decode(file); }},
      {"through the cores", [&] { return Replay(file, false); }},
      {"compared with its facts", [&] { return Replay(file, true); }}};
  for (const auto& [name, run] : parts) {
    ASSIGN_OR_RETURN(const Figures figures, Apart(run));
    const double rate = static_cast<double>(figures.events) / figures.seconds;
    report->Row(
        {name, Number(static_cast<double>(figures.events)), Number(rate), Number(figures.mib)});
    report->json()[name] = {
        {"events", figures.events}, {"events_per_s", rate}, {"peak_mib", figures.mib}};
    if (std::string_view(name) == "decoded") {
      report->Target("decoded", rate, /*at_least=*/true, kWantedDecoded, "events/s");
    }
    if (figures.different > 0) {
      report->Problem(fmt::format("{} decisions are not as recorded", figures.different));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Report> Run(const Options& options) {
  Report report("replay");
  if (!options.file.empty()) {
    RETURN_IF_ERROR(Measure(options.file, &report));
    return report;
  }
  const std::string file = fmt::format(
      "{}/fluxqueue-bench-{}.gz", std::filesystem::temp_directory_path().string(), getpid());
  absl::Status status = Apart([&]() -> absl::StatusOr<Figures> {
                          RETURN_IF_ERROR(WriteReplayLog(file, options.events));
                          return Figures();
                        }).status();
  if (status.ok()) status = Measure(file, &report);
  if (options.keep) {
    fmt::print(stderr, "kept: {}\n", file);
  } else {
    std::filesystem::remove(file);
  }
  if (!status.ok()) return status;
  return report;
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue;
  using namespace fluxqueue::bench;
  InitLog("bench", LogLevel::kWarning, LogFormat::kText);
  Options options;
  CLI::App app("How fast a log is replayed.");
  app.add_option("--events", options.events)->check(CLI::Range(1000, 100'000'000));
  app.add_option("--file", options.file)->check(CLI::ExistingPath);
  app.add_flag("--keep", options.keep);
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<Report> report = Run(options);
  if (!report.ok()) {
    fmt::print(stderr, "{}\n", Message(report.status()));
    return 1;
  }
  fmt::print("{}\n", options.output == "json" ? report->JsonText() : report->Table());
  return report->sound() ? 0 : 1;
}
