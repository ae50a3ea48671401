// config check: files before they are used.
#include <fstream>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/config/service_config.h"
#include "services/admission/config.h"
#include "services/binder/config.h"
#include "services/cleanup/config.h"
#include "services/graph/config.h"
#include "services/matcher/config.h"
#include "services/queue/config.h"
#include "services/visibility/config.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/manifest_check.h"

namespace fluxqueue::cli {
namespace {

const std::vector<std::string> kServices = {
    "admission", "queue", "matcher", "binder", "cleanup", "visibility", "graph"};

struct Options {
  std::vector<std::string> files;
  std::string service;
};

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return InvalidArgument("{}: cannot be read", path);
  return text.str();
}

// Whose section the file has; a file without any has the common part only.
std::string ServiceOf(const std::string& text) {
  try {
    const YAML::Node root = YAML::Load(text);
    for (const std::string& service : kServices) {
      if (root.IsMap() && root[service]) return service;
    }
  } catch (const YAML::Exception&) {
    // LoadService says what is wrong with it.
  }
  return "cleanup";
}

// As the service itself would at its start.
absl::Status CheckService(const std::string& file, const std::string& service) {
  admission::AdmissionConfig admission;
  queue::QueueConfig queue;
  matcher::MatcherConfig matcher;
  binder::BinderConfig binder;
  cleanup::CleanupConfig cleanup;
  visibility::VisibilityConfig visibility;
  graph_service::GraphConfig graph;
  const std::map<std::string, config::Section> sections = {
      {"admission", admission::Describe(&admission)},
      {"queue", queue::Describe(&queue)},
      {"matcher", matcher::Describe(&matcher)},
      {"binder", binder::Describe(&binder)},
      {"cleanup", cleanup::Describe(&cleanup)},
      {"visibility", visibility::Describe(&visibility)},
      {"graph", graph_service::Describe(&graph)}};
  config::ServiceConfig common;
  const auto stores = service == "visibility" ? config::Stores::kNone
                      : service == "graph"    ? config::Stores::kPostgres
                                              : config::Stores::kBoth;
  return config::LoadService(file, service, sections.at(service), &common, stores);
}

void Print(const Context& context, const std::vector<Problem>& problems, size_t files) {
  if (context.structured()) {
    nlohmann::json result = nlohmann::json::array();
    for (const Problem& problem : problems) {
      result.push_back({{"file", problem.file}, {"line", problem.line}, {"problem", problem.text}});
    }
    fmt::print("{}", context.Structured(result));
    return;
  }
  for (const Problem& problem : problems) {
    if (problem.line == 0) {
      fmt::print("{}\n", problem.text);
    } else {
      fmt::print("{}:{}: {}\n", problem.file, problem.line, problem.text);
    }
  }
  if (problems.empty()) fmt::print("{} files are fine\n", files);
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  std::vector<Problem> problems;
  ManifestCheck manifests;
  for (const std::string& file : options.files) {
    ASSIGN_OR_RETURN(const std::string text, ReadWhole(file));
    if (options.service.empty() && manifests.Add(file, text)) continue;
    const std::string service = options.service.empty() ? ServiceOf(text) : options.service;
    // Its message names file and line of each problem.
    if (const absl::Status status = CheckService(file, service); !status.ok()) {
      problems.push_back({.file = file, .text = Message(status)});
    }
  }
  const std::vector<Problem> found = manifests.Finish();
  problems.insert(problems.end(), found.begin(), found.end());
  Print(context, problems, options.files.size());
  return problems.empty() ? 0 : 1;
}

}  // namespace

void RegisterConfig(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("config", "Check configurations before they are used");
  group->group("Operation");
  group->require_subcommand(1);
  CLI::App* sub = group->add_subcommand(
      "check", "Configurations of services, and manifests of FluxQueues and FluxWindows");
  const auto options = std::make_shared<Options>();
  sub->add_option("FILE", options->files, "YAML")
      ->required()
      ->type_name("FILE")
      ->check(CLI::ExistingFile.description(""));
  sub->add_option("--service", options->service, "Whose configuration it is, if it does not say")
      ->type_name("admission|queue|matcher|binder|cleanup|visibility|graph")
      ->check(CLI::IsMember(kServices).description(""));
  const char* about =
      "Needs no system. FluxQueues are checked together, so name the files that belong together: "
      "a parent has to be\namong them. Exit status 1 when something is wrong; each line says file, "
      "line, key, value and what is allowed.\n\n"
      "Examples:\n"
      "  fluxqueue config check k8s/queues/*.yaml\n"
      "  fluxqueue config check --service queue queue.yaml";
  sub->footer(about);
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
