#include "tests/simulation/options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <CLI/CLI.hpp>

namespace fluxqueue::simulation {
namespace {

struct Texts {
  std::string seeds;
  std::string share = "0/1";
  std::string without;
};

bool ParseNumber(std::string_view text, uint64_t* number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && rest == end;
}

// "A-B", "A/B".
bool ParsePair(std::string_view text, char between, uint64_t* first, uint64_t* second) {
  const size_t at = text.find(between);
  return at != std::string_view::npos && ParseNumber(text.substr(0, at), first) &&
         ParseNumber(text.substr(at + 1), second);
}

// What the command line does not say, the environment may.
bool ParseSeeds(const Texts& texts, const Subject& subject, Options* options) {
  if (!texts.seeds.empty()) {
    if (ParseNumber(texts.seeds, &options->from)) {
      options->to = options->from;
      return true;
    }
    return ParsePair(texts.seeds, '-', &options->from, &options->to);
  }
  if (options->mutations) {
    options->to = subject.mutation_seeds;
    return true;
  }
  options->to = subject.seeds;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
  const char* const more = std::getenv("FLUXQUEUE_SIMULATION_SEEDS");
  return more == nullptr || ParseNumber(more, &options->to);
}

// What is wrong with it; empty: nothing.
std::string Read(const Texts& texts, const Subject& subject, Options* options) {
  if (!ParseSeeds(texts, subject, options) || options->from > options->to) {
    return "seeds: wanted a number, or FROM-TO";
  }
  if (!ParsePair(texts.share, '/', &options->share, &options->shares) ||
      options->share >= options->shares) {
    return "--share: wanted N/OF, from 0";
  }
  if (!texts.without.empty()) {
    const std::optional<Without> without = WithoutOf(subject, texts.without);
    if (!without.has_value()) return "--without: wanted one of " + ListOfSafeties(subject);
    options->without = *without;
  }
  if (options->commits_lost && !subject.commits_may_be_lost) {
    return "--commits-lost: not simulated here";
  }
  if (options->cluster_back && !subject.cluster_may_go_back) {
    return "--cluster-back: not simulated here";
  }
  return {};
}

}  // namespace

std::optional<Options> ParseOptions(const Subject& subject, int argc, char** argv, int* exit) {
  Options options;
  Texts texts;
  std::vector<size_t> faults;
  bool quiet = false;
  CLI::App app("Real loops in a simulated world: " + subject.program);
  app.add_option("--seeds", texts.seeds, "FROM-TO, or one");
  app.add_option("--share", texts.share, "N/OF: only seeds whose rest by OF is N");
  app.add_option("--without", texts.without, "a safety taken out: " + ListOfSafeties(subject));
  app.add_flag("--commits-lost", options.commits_lost, "the database goes back once in each run");
  app.add_flag(
      "--cluster-back", options.cluster_back, "the cluster's store goes back once in each run");
  CLI::Option* const only =
      app.add_option("--faults", faults, "only these faults of the plan, such as 0,3")
          ->delimiter(',');
  app.add_flag("--no-faults", quiet, "nothing goes wrong")->excludes(only);
  app.add_flag("--story", options.story, "tell what happens");
  app.add_flag("--mutations", options.mutations, "take each safety out, over all seeds");
  try {
    app.parse(argc, argv);
    const std::string wrong = Read(texts, subject, &options);
    if (!wrong.empty()) throw CLI::ValidationError(wrong);
  } catch (const CLI::ParseError& error) {
    *exit = app.exit(error);
    return std::nullopt;
  }
  if (only->count() > 0 || quiet) options.faults = faults;
  return options;
}

}  // namespace fluxqueue::simulation
