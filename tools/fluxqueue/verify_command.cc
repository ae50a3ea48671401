#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/verify/invariants.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using verify::Check;

// What is on its way must have arrived by then; a difference that every look until then sees is a
// defect.
constexpr auto kBound = 10s;
constexpr auto kBetweenLooks = 2s;
constexpr size_t kFindingsShown = 20;

struct Options {
  bool no_replay = false;
  std::string library;
};

// Kafka first, then the cluster, then the rows: what is seen of the world has its cause in the
// rows.
class Verifier {
 public:
  Verifier(SystemConfig config, const std::string& library)
      : config_(std::move(config)),
        connection_(PostgresOptions(config_.dsn)),
        reader_(config_.brokers, library) {}

  absl::StatusOr<std::vector<Check>> Look() {
    verify::Snapshot snapshot;
    bool cut = false;
    ASSIGN_OR_RETURN(const std::set<int> lost, ReadFactsLost(connection_));
    ASSIGN_OR_RETURN(const verify::FactLog facts,
                     reader_.ReadFacts(verify::FactLog::Hold::kTrails, lost, &cut));
    AddTopic(facts, cut, &snapshot);
    if (config_.has_cluster) {
      ASSIGN_OR_RETURN(snapshot.cluster, ReadCluster(config_.kubeconfig));
    }
    RETURN_IF_ERROR(ReadRows(connection_, &snapshot));
    return verify::CheckInvariants(snapshot);
  }

  absl::StatusOr<Check> Replay() {
    bool cut = false;
    ASSIGN_OR_RETURN(const std::set<int> lost, ReadFactsLost(connection_));
    ASSIGN_OR_RETURN(verify::FactLog facts,
                     reader_.ReadFacts(verify::FactLog::Hold::kFacts, lost, &cut));
    ASSIGN_OR_RETURN(const auto pools, ReadPools(connection_, ""));
    const auto replayed = ReplayPools(connection_, reader_, pools, facts);
    if (replayed.ok()) return verify::CheckReplay(*replayed);
    if (!absl::IsFailedPrecondition(replayed.status())) return replayed.status();
    Check check = verify::CheckReplay({});
    check.not_checked = Message(replayed.status());
    return check;
  }

 private:
  const SystemConfig config_;
  postgres::Connection connection_;
  const LogReader reader_;
};

json ToJson(const std::vector<Check>& checks) {
  json result = {{"ok", verify::AllOk(checks)}, {"invariants", json::array()}};
  for (const Check& check : checks) {
    json findings = json::array();
    for (const verify::Finding& finding : check.findings) findings.push_back(finding.text);
    result["invariants"].push_back({{"number", check.number},
                                    {"title", check.title},
                                    {"ok", check.ok()},
                                    {"checked", check.checked},
                                    {"notChecked", check.not_checked},
                                    {"findings", std::move(findings)}});
  }
  return result;
}

void Print(const std::vector<Check>& checks, bool colour) {
  for (const Check& check : checks) {
    const std::string mark =
        check.ok() ? Paint("✓", Colour::kGreen, colour) : Paint("✗", Colour::kRed, colour);
    fmt::print("{} {}  {}  {}\n",
               mark,
               check.number,
               check.title,
               Paint(fmt::format("({})", check.checked), Colour::kDim, colour));
    if (!check.not_checked.empty()) fmt::print("     not all of it: {}\n", check.not_checked);
    for (size_t i = 0; i < std::min(check.findings.size(), kFindingsShown); ++i) {
      fmt::print("     {}\n", check.findings[i].text);
    }
    if (check.findings.size() > kFindingsShown) {
      fmt::print("     … and {} more (-o json has them all)\n",
                 check.findings.size() - kFindingsShown);
    }
  }
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  Verifier verifier(config, options.library);
  const auto deadline = context.clock.Monotonic() + kBound;
  ASSIGN_OR_RETURN(std::vector<Check> checks, verifier.Look());
  while (!verify::AllOk(checks) && context.clock.Monotonic() < deadline) {
    std::this_thread::sleep_for(kBetweenLooks);
    ASSIGN_OR_RETURN(std::vector<Check> again, verifier.Look());
    checks = verify::Persisting(checks, std::move(again));
  }
  if (!options.no_replay) {
    ASSIGN_OR_RETURN(Check replay, verifier.Replay());
    checks.push_back(std::move(replay));
  }
  if (context.structured()) {
    fmt::print("{}", context.Structured(ToJson(checks)));
  } else {
    Print(checks, context.colour);
  }
  return verify::AllOk(checks) ? 0 : 1;
}

}  // namespace

void RegisterVerify(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("verify", "Check the eight invariants on the live system");
  sub->group("Operation");
  auto options = std::make_shared<Options>();
  sub->add_flag("--no-replay",
                options->no_replay,
                "Leave out the eighth, which reads the logs from their start");
  AddLibraryOption(sub, &options->library);
  sub->footer(
      "It looks once; when something is found it looks again every 2 s for 10 s, and calls broken "
      "what every\nlook sees. Exit status 1 when an invariant is broken.\n\n"
      "Examples:\n"
      "  fluxqueue verify\n"
      "  fluxqueue verify --no-replay -o json | jq '.invariants[] | select(.ok | not)'");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
