// fluxqueue workload: jobs for the simulator, made by a model.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/simulation/generator.h"
#include "libs/trace/swf.h"

#include "tools/fluxqueue/commands.h"

namespace fluxqueue::cli {
namespace {

struct Options {
  simulation::GeneratorOptions generator{};
  std::string requests{simulation::Name(simulation::Requests::kModal)};
};

absl::StatusOr<int> Run(Options options) {
  simulation::GeneratorOptions& generator = options.generator;
  ASSIGN_OR_RETURN(generator.requests, simulation::ParseRequests(options.requests));
  RETURN_IF_ERROR(simulation::CheckGenerator(generator));
  const std::string comment = fmt::format(
      "Lublin-Feitelson model with users, by fluxqueue workload --seed {} --jobs {} --processors "
      "{} "
      "--load {} --users {} --requests {} --without-request {} --liars {} "
      "--failures {} --drift {} --one-second-user {}\nMaxProcs: {}",
      generator.seed,
      generator.jobs,
      generator.processors,
      generator.load,
      generator.users,
      options.requests,
      generator.without_request,
      generator.liars,
      generator.failures,
      generator.drift,
      generator.one_second_user,
      generator.processors);
  fmt::print("{}", trace::FormatSwf(simulation::Generate(generator).jobs, comment));
  return 0;
}

void AddOptions(CLI::App* sub, Options* options) {
  simulation::GeneratorOptions& generator = options->generator;
  sub->add_option("--seed", generator.seed, "Another number is another workload")
      ->capture_default_str();
  sub->add_option("--jobs", generator.jobs, "How many")->capture_default_str();
  sub->add_option("--processors", generator.processors, "Of the machine that they are made for")
      ->capture_default_str();
  sub->add_option("--load",
                  generator.load,
                  "What they use of the machine between the first and the last submission: 0.9 is "
                  "90 %")
      ->capture_default_str();
  sub->add_option("--users", generator.users, "How many, some of whom submit far more than others")
      ->capture_default_str();
  sub->add_option("--requests",
                  options->requests,
                  "How long users say that a job runs: exact, its run time; uniform, 1 to 5 times "
                  "that; modal, a round value that is long enough (15 min, 1 h, 4 h …)")
      ->capture_default_str();
  sub->add_option("--without-request",
                  generator.without_request,
                  "The share of the users who do not say it: 0.2 is a fifth")
      ->capture_default_str();
  sub->add_option(
         "--failures", generator.failures, "The share of the jobs that crash within a minute")
      ->capture_default_str();
  sub->add_option("--drift",
                  generator.drift,
                  "How many times as long the last jobs run as those of the model")
      ->capture_default_str();
  sub->add_option("--one-second-user",
                  generator.one_second_user,
                  "The number of a user who says 1 s of each job; 0: none does")
      ->capture_default_str();
  sub->add_option("--liars",
                  generator.liars,
                  "The share of the users who say less than it will be: 5 to 50 % of that")
      ->capture_default_str();
}

constexpr const char* kAbout =
    "Prints a workload in the Standard Workload Format. Arrivals, widths and run times are those "
    "of "
    "the model of Lublin and Feitelson (2003) with its published constants; users submit a job "
    "like "
    "the last again and again, before they go on to another. The same options give the same "
    "bytes.\n\n"
    "  fluxqueue workload --seed 7 --requests modal --without-request 0.2 >modal.swf\n"
    "  fluxqueue simulate --jobs modal.swf --processors 256 --strategy easy \\\n"
    "    --estimates requested,predicted --default-duration 1h";

}  // namespace

void RegisterWorkload(CLI::App& app, Context& context) {
  const auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("workload", "Make a workload for the simulator, by a model");
  sub->group("Planning");
  sub->footer(kAbout);
  AddOptions(sub, options.get());
  sub->callback([&context, options] { context.command = [options] { return Run(*options); }; });
}

}  // namespace fluxqueue::cli
