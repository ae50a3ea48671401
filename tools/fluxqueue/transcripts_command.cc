#include "tools/fluxqueue/transcripts_command.h"

#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/conformance/better_answer.h"
#include "libs/conformance/reapi_library.h"
#include "libs/conformance/transcript.h"

#include "tools/fluxqueue/load/trace_file.h"

namespace fluxqueue::cli {
namespace {

using conformance::CallDifference;
using conformance::TranscriptResult;
using nlohmann::json;

struct Played {
  std::string directory;
  std::vector<TranscriptResult> sequences;
};

struct Totals {
  size_t calls = 0;
  size_t equal = 0;
  size_t equal_sequences = 0;
  size_t following = 0;
  size_t better = 0;
  size_t different = 0;
  std::map<std::string_view, size_t> by_rule;
};

absl::StatusOr<Played> Play(const std::string& directory, conformance::ReapiLibrary* library) {
  Played played{directory, {}};
  const std::string name = directory + "/transcripts.jsonl.gz";
  ASSIGN_OR_RETURN(const std::string lines, load::ReadTraceFile(name));
  std::istringstream stream(lines);
  std::string line;
  while (std::getline(stream, line)) {
    absl::StatusOr<TranscriptResult> result = conformance::PlayTranscript(line, library);
    if (!result.ok()) {
      return Annotate(result.status(), fmt::format("{}:{}", name, played.sequences.size() + 1));
    }
    played.sequences.push_back(*std::move(result));
  }
  return played;
}

Totals TotalsOf(const Played& played) {
  Totals totals;
  for (const TranscriptResult& sequence : played.sequences) {
    totals.calls += sequence.calls;
    totals.equal += sequence.equal;
    totals.equal_sequences += sequence.equal == sequence.calls ? 1 : 0;
    totals.following += sequence.following;
    totals.better += sequence.better.size();
    totals.different += sequence.different.size();
    for (const CallDifference& difference : sequence.better) ++totals.by_rule[difference.better];
  }
  return totals;
}

// A difference rather than a better answer; null when all is equal.
const CallDifference* FirstOf(const TranscriptResult& sequence) {
  if (!sequence.different.empty()) return &sequence.different.front();
  return sequence.better.empty() ? nullptr : &sequence.better.front();
}

json ToJson(const Played& played, const Totals& totals) {
  json differences = json::array();
  for (size_t i = 0; i < played.sequences.size(); ++i) {
    const CallDifference* first = FirstOf(played.sequences[i]);
    if (first == nullptr) continue;
    differences.push_back({{"sequence", i + 1},
                           {"call", first->call},
                           {"function", first->function},
                           {"better", first->better},
                           {"expected", json::parse(first->expected)},
                           {"given", json::parse(first->given)}});
  }
  json better = json::object();
  for (const auto& [rule, count] : totals.by_rule) better[std::string(rule)] = count;
  return {{"set", played.directory},
          {"calls", totals.calls},
          {"equal", totals.equal},
          {"sequences", played.sequences.size()},
          {"equal_sequences", totals.equal_sequences},
          {"better", std::move(better)},
          {"following", totals.following},
          {"different", totals.different},
          {"differences", std::move(differences)}};
}

void PrintDifferences(const Played& played) {
  for (size_t i = 0; i < played.sequences.size(); ++i) {
    const CallDifference* first = FirstOf(played.sequences[i]);
    if (first == nullptr) continue;
    fmt::print("sequence {}, call {}, {}{}\n    expected {}\n    given    {}\n",
               i + 1,
               first->call,
               first->function,
               first->better.empty() ? "" : fmt::format(" (better: {})", first->better),
               first->expected,
               first->given);
  }
}

void Print(const Played& played, const Totals& totals) {
  fmt::print(
      "{}: calls {}/{}, sequences {}/{}; better answers {}, following them {}, different {}\n",
      played.directory,
      totals.equal,
      totals.calls,
      totals.equal_sequences,
      played.sequences.size(),
      totals.better,
      totals.following,
      totals.different);
  for (const conformance::BetterAnswer& rule : conformance::BetterAnswers()) {
    const auto count = totals.by_rule.find(rule.name);
    if (count == totals.by_rule.end()) continue;
    fmt::print("{:6} {}: {}\n", count->second, rule.name, rule.reason);
  }
}

}  // namespace

absl::StatusOr<int> PlayTranscripts(const Context& context,
                                    const std::string& library,
                                    const std::vector<std::string>& directories,
                                    bool verbose) {
  ASSIGN_OR_RETURN(const std::unique_ptr<conformance::ReapiLibrary> opened,
                   conformance::ReapiLibrary::Open(library));
  bool same = true;
  json report = json::array();
  for (const std::string& directory : directories) {
    ASSIGN_OR_RETURN(const Played played, Play(directory, opened.get()));
    const Totals totals = TotalsOf(played);
    same = same && totals.different == 0;
    if (context.structured()) {
      report.push_back(ToJson(played, totals));
      continue;
    }
    if (verbose) PrintDifferences(played);
    Print(played, totals);
  }
  if (context.structured()) fmt::print("{}", context.Structured(report));
  return same ? 0 : 1;
}

}  // namespace fluxqueue::cli
