#include "tests/soak/settle.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::soak {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr size_t kMostShown = 5;

// Where a live job, a held node or a message on its way has a row.
constexpr std::array kLiveRows = {"queue.jobs WHERE live",
                                  "queue.cycles WHERE NOT answered",
                                  "matcher.allocations WHERE NOT released",
                                  "matcher.reservations",
                                  "matcher.specs",
                                  "binder.jobs",
                                  "binder.slots"};
constexpr std::array kTroubleTables = {"quarantine", "under_way", "skips", "outbox"};
constexpr std::array kSchemas = {"admission", "queue", "matcher", "binder", "cleanup"};

// A Job that was deleted with --cascade=orphan leaves its FluxJob without an owner, for up to an
// hour.
std::string NamesOf(std::string_view kind) {
  return kind == "fluxjobs" ? "jsonpath={.items[?(@.metadata.ownerReferences)].metadata.name}"
                            : "name";
}

std::vector<std::string> LinesOf(std::string_view text) {
  return absl::StrSplit(std::string(text), '\n', absl::SkipEmpty());
}

// Lines of a log that a soak does not expect.
std::vector<std::string> UnexpectedLines(std::string_view log) {
  std::vector<std::string> lines;
  for (const std::string& line : LinesOf(log)) {
    if (line.find(" ERROR ") != std::string::npos) lines.push_back(line.substr(0, 400));
  }
  return lines;
}

// Of kubectl: it goes on with the others.
bool OnlyGone(const std::string& errors) {
  const std::vector<std::string> after = absl::StrSplit(errors, "Error from server ");
  return after.size() > 1 && std::all_of(after.begin() + 1, after.end(), [](const auto& error) {
           return error.starts_with("(NotFound)");
         });
}

}  // namespace

absl::StatusOr<std::string> Settling::InNamespace(std::vector<std::string> words) {
  words.insert(words.end(), {"-n", std::string(kNamespace)});
  return system_->Kubectl(words);
}

absl::Status Settling::MakeWhole() {
  RETURN_IF_ERROR(hands_->MakeNodes());
  ASSIGN_OR_RETURN(const World world, hands_->Look());
  for (const auto& [name, node] : world.nodes) {
    if (node.cordoned)
      RETURN_IF_ERROR(hands_->Do({.what = What::kUncordon, .kind = "Node", .name = name}));
    if (node.tainted)
      RETURN_IF_ERROR(hands_->Do({.what = What::kUntaint, .kind = "Node", .name = name}));
  }
  RETURN_IF_ERROR(
      ToAll({"delete", "deployments,replicasets,statefulsets,cronjobs", "--all", "--wait=false"}));
  // What an orphaned Deployment or StatefulSet has left.
  RETURN_IF_ERROR(ToAll({"delete", "pods", "-l", "soak", "--wait=false"}));
  RETURN_IF_ERROR(ToAll({"annotate", "jobs", "--all", "fluxqueue.io/hold-"}));
  for (const Object& object : world.objects) {
    if (object.kind == "Job" && object.suspended_by_soak && !object.ended) {
      RETURN_IF_ERROR(hands_->Do({.what = What::kResumeJob, .kind = "Job", .name = object.name}));
    }
  }
  ASSIGN_OR_RETURN(const auto live, system_->Query("SELECT job_id FROM queue.jobs WHERE live"));
  for (const auto& row : live) system_->Fluxqueue({"release", row[0]}).status().IgnoreError();
  return absl::OkStatus();
}

absl::Status Settling::ToAll(const std::vector<std::string>& words) {
  absl::Status done;
  return system_->WaitFor(
      [&] {
        done = InNamespace(words).status();
        return done.ok() || OnlyGone(Message(done));
      },
      kPatience,
      [&] { return std::string(Message(done)); });
}

absl::Status Settling::WaitForEnds(std::chrono::seconds deadline) {
  return system_->WaitFor(
      [&] {
        return system_->QueryOne("SELECT count(*) FROM queue.jobs WHERE live").value_or("") == "0";
      },
      deadline,
      [&] {
        std::string live;
        const auto rows = system_->Query(
            "SELECT kind, name, state, reason, message FROM queue.jobs WHERE live ORDER BY name");
        if (!rows.ok()) return Message(rows.status());
        for (const auto& row : *rows) live += "\n  " + absl::StrJoin(row, " ");
        return "jobs that have not ended:" + live;
      });
}

absl::Status Settling::DeleteAll() {
  return InNamespace({"delete", "jobs,pods,jobsets,mpijobs", "--all", "--wait=false"}).status();
}

void Settling::ExpectNone(const std::string& rows, std::vector<std::string>* complaints) {
  std::string count;
  const absl::Status none = system_->WaitFor(
      [&] {
        count = system_->QueryOne("SELECT count(*) FROM " + rows).value_or("no answer");
        return count == "0";
      },
      kPatience,
      [&] { return fmt::format("{} rows in {}, wanted none", count, rows); });
  if (!none.ok()) complaints->push_back(Message(none));
}

void Settling::ExpectNoObject(const std::string& kind, std::vector<std::string>* complaints) {
  std::string left;
  const absl::Status none = system_->WaitFor(
      [&] {
        left = InNamespace({"get", kind, "-o", NamesOf(kind)}).value_or("no answer");
        return left.empty();
      },
      kPatience,
      [&] { return fmt::format("of {} there should be none, and there are:\n{}", kind, left); });
  if (!none.ok()) complaints->push_back(Message(none));
}

void Settling::ExpectFluxJobsEnded(std::vector<std::string>* complaints) {
  std::vector<std::string> live;
  const absl::Status ended = system_->WaitFor(
      [&] {
        live.clear();
        const auto states = InNamespace(
            {"get",
             "fluxjobs",
             "-o",
             "jsonpath={range .items[*]}{.metadata.name} {.status.state}{\"\\n\"}{end}"});
        if (!states.ok()) return false;
        for (const std::string& line : LinesOf(*states)) {
          const bool over = line.ends_with(" Succeeded") || line.ends_with(" Failed") ||
                            line.ends_with(" Cancelled");
          if (!over) live.emplace_back(line);
        }
        return live.empty();
      },
      kPatience,
      [&] {
        return "FluxJobs that do not say that they have ended: " + absl::StrJoin(live, ", ");
      });
  if (!ended.ok()) complaints->push_back(Message(ended));
}

void Settling::ExpectNodesFree(std::vector<std::string>* complaints) {
  const auto shown = system_->Fluxqueue({"nodes", "-o", "json"});
  const nlohmann::json nodes =
      shown.ok() ? nlohmann::json::parse(shown->output, nullptr, false) : nlohmann::json();
  if (!nodes.is_array() || nodes.size() != Hands::NodeNames().size()) {
    complaints->push_back(fmt::format("fluxqueue nodes: wanted {} nodes: {}",
                                      Hands::NodeNames().size(),
                                      shown.ok() ? shown->output : shown.status().ToString()));
    return;
  }
  for (const nlohmann::json& node : nodes) {
    if (node.contains("jobs") && node["jobs"].empty()) continue;
    complaints->push_back("a node that is not free: " + node.dump());
  }
}

std::vector<std::string> Settling::Ended() {
  std::vector<std::string> complaints;
  for (const char* rows : kLiveRows) ExpectNone(rows, &complaints);
  ExpectFluxJobsEnded(&complaints);
  ExpectNodesFree(&complaints);
  return complaints;
}

std::vector<std::string> Settling::Gone() {
  std::vector<std::string> complaints;
  for (const char* kind : {"pods", "jobs", "replicasets", "fluxjobs"}) {
    ExpectNoObject(kind, &complaints);
  }
  ExpectNone("admission.workloads", &complaints);
  for (const char* schema : kSchemas) {
    for (const char* table : kTroubleTables) {
      const auto there =
          system_->QueryOne(fmt::format("SELECT to_regclass('{}.{}') IS NOT NULL", schema, table));
      if (there.value_or("") == "t") ExpectNone(fmt::format("{}.{}", schema, table), &complaints);
    }
  }
  const auto letters = system_->Fluxqueue({"dead-letters", "list", "-o", "json"});
  if (!letters.ok() ||
      nlohmann::json::parse(letters->output, nullptr, false) != nlohmann::json::array()) {
    complaints.push_back("dead letters: " +
                         (letters.ok() ? letters->output : letters.status().ToString()));
  }
  return complaints;
}

std::vector<std::string> Settling::Services() const {
  std::vector<std::string> complaints;
  for (const auto& [service, process] : hands_->processes()) {
    if (hands_->ProcessOf(service) != process) {
      complaints.push_back(fmt::format(
          "{} was process {}, and is now '{}'", service, process, hands_->ProcessOf(service)));
    }
    std::ifstream file(fmt::format("{}/logs/{}-1.log", system_->folder(), service));
    const std::string log(std::istreambuf_iterator<char>(file), {});
    if (log.empty()) complaints.push_back("no log of " + service);
    const std::vector<std::string> lines = UnexpectedLines(log);
    for (size_t i = 0; i < std::min(lines.size(), kMostShown); ++i) {
      complaints.push_back(fmt::format("{}: {}", service, lines[i]));
    }
    if (lines.size() > kMostShown) {
      complaints.push_back(
          fmt::format("{}: {} more lines like these", service, lines.size() - kMostShown));
    }
  }
  return complaints;
}

std::string Settling::States() {
  const auto rows = system_->Query(
      "SELECT state, count(*) FROM queue.jobs GROUP BY state ORDER BY count(*) DESC");
  if (!rows.ok()) return Message(rows.status());
  std::vector<std::string> states;
  for (const auto& row : *rows) states.push_back(row[1] + " " + row[0]);
  return absl::StrJoin(states, ", ");
}

}  // namespace fluxqueue::soak
