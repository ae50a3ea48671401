#include "tools/fluxqueue/match/match_shell.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/base/utf8.h"
#include "libs/fluxion/library.h"
#include "libs/graph/jgf_writer.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/request.h"
#include "libs/graph/resource_set_reader.h"

#include "tools/fluxqueue/match/holding_drawing.h"

namespace fluxqueue::cli {
namespace {

using graph::GraphExplanation;
using graph::HeldVertex;
using graph::Holding;
using graph::SetFormat;
using nlohmann::ordered_json;
using reapi::JobInfo;
using reapi::JobMode;
using reapi::JobNumber;
using reapi::Placement;

constexpr std::string_view kPrompt = "fluxqueue> ";
// As resource-query has it: what `first` takes depends on it.
constexpr std::string_view kPruneFilters = "ALL:core";

absl::StatusOr<JobNumber> ParseJob(std::string_view text) {
  JobNumber job = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), job);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument("ID: must be the number of a job, is \"{}\"", text);
  }
  return job;
}

absl::StatusOr<std::unique_ptr<fluxion::Context>> OpenLibrary(const MatchOptions& options,
                                                              const graph::ResourceGraph& graph) {
  ASSIGN_OR_RETURN(auto library, fluxion::Library::Open(options.library));
  graph::JgfWriter writer(graph);
  const std::string jgf = writer.Next(SIZE_MAX);
  return fluxion::MakeContext(std::move(library),
                              jgf,
                              {.policy = options.policy,
                               .traverser = "simple",
                               .prune_filters = std::string(kPruneFilters)});
}

// JGF has `graph` at its top, R has `execution`. A text that is no JSON is left to their readers.
absl::StatusOr<std::string_view> LoadFormatOf(std::string_view text) {
  std::string_view format;
  const auto look = [&format](int depth, ordered_json::parse_event_t event, ordered_json& parsed) {
    if (depth != 1 || event != ordered_json::parse_event_t::key || !format.empty()) return false;
    if (parsed == "graph") format = "jgf";
    if (parsed == "execution") format = "rv1exec";
    return false;
  };
  [[maybe_unused]] const ordered_json nothing = ordered_json::parse(text, look, false);
  if (format.empty()) {
    return InvalidArgument(
        "must be JGF (a JSON object with \"graph\") or R version 1 (one with \"execution\")");
  }
  return format;
}

std::string Dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string UntilText(int64_t end_s) {
  return end_s < graph::kForever ? fmt::format(" until {} s", end_s) : "";
}

ordered_json UntilJson(int64_t end_s) {
  return end_s < graph::kForever ? ordered_json(end_s) : ordered_json();
}

// " from 60 s until 120 s", without what is now and never.
std::string TimesOf(const Holding& holding) {
  return (holding.at_s > 0 ? fmt::format(" from {} s", holding.at_s) : "") +
         UntilText(holding.at_s + holding.duration_s);
}

void AddTimes(const Holding& holding, ordered_json* value) {
  (*value)["at"] = holding.at_s;
  (*value)["until"] = UntilJson(holding.at_s + holding.duration_s);
}

// Found is not held.
Holding Unmarked(const Holding& found) {
  Holding unmarked;
  for (HeldVertex vertex : found.vertices) {
    vertex.exclusive = false;
    unmarked.vertices.push_back(vertex);
  }
  return unmarked;
}

std::string_view OutcomeOf(JobMode mode) {
  switch (mode) {
    case JobMode::kAllocated:
      return "allocated";
    case JobMode::kReserved:
      return "reserved";
    case JobMode::kCanceled:
      return "cancelled";
  }
  return {};
}

ordered_json HoldersOf(const GraphExplanation& why) {
  ordered_json holders = ordered_json::array();
  for (const GraphExplanation::Holder& holder : why.holders) {
    holders.push_back(
        {{"job", holder.job}, {"amount", holder.amount}, {"until", UntilJson(holder.until_s)}});
  }
  return holders;
}

}  // namespace

struct MatchShell::Reply {
  std::string text;
  ordered_json value;
};

struct MatchShell::Command {
  std::string_view name;
  std::string_view abbreviation;  // as in resource-query
  std::string_view arguments;
  size_t least;  // of arguments
  size_t most;
  absl::StatusOr<Reply> (MatchShell::*run)(Words words);
  std::string_view what;
};

std::span<const MatchShell::Command> MatchShell::Commands() {
  static constexpr std::array<Command, 15> kCommands = {{
      {"match", "m", "OPERATION FILE", 2, 2, &MatchShell::Match, "find a place for a jobspec"},
      {"explain", "", "FILE", 1, 1, &MatchShell::Explain, "why a jobspec does not fit now"},
      {"cancel", "c", "ID", 1, 1, &MatchShell::Cancel, "give back what a job holds"},
      {"partial-cancel", "pc", "ID FILE", 2, 2, &MatchShell::CancelPart, "… what R names of it"},
      {"info", "i", "ID", 1, 1, &MatchShell::Info, "what a job holds, and when"},
      {"list", "l", "", 0, 0, &MatchShell::List, "all jobs"},
      {"find",
       "f",
       "CRITERIA",
       1,
       SIZE_MAX,
       &MatchShell::Find,
       "resources: status=down or names=…"},
      {"set-status", "t", "PATH up|down", 2, 2, &MatchShell::SetStatus, "mark up or down"},
      {"get-status", "e", "PATH", 1, 1, &MatchShell::GetStatus, "whether it is marked up"},
      {"set-property", "p", "PATH KEY=VALUE", 2, 2, &MatchShell::SetProperty, "add a property"},
      {"get-property", "g", "PATH", 1, 1, &MatchShell::GetProperty, "all properties"},
      {"attach", "j", "FILE", 1, 1, &MatchShell::Attach, "add what a graph (JGF) has more"},
      {"remove", "", "PATH", 1, 1, &MatchShell::Remove, "take out a vertex with all below it"},
      {"help", "h", "", 0, 0, &MatchShell::Help, "this"},
      {"quit", "q", "", 0, 0, &MatchShell::Quit, "end"},
  }};
  return kCommands;
}

std::string MatchShell::CommandNames() {
  std::string names;
  for (const Command& command : Commands()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", command.name);
  }
  return names;
}

MatchShell::MatchShell(std::unique_ptr<reapi::Session> session,
                       std::unique_ptr<fluxion::Context> decides,
                       std::optional<SetFormat> format,
                       bool json,
                       FileReader read)
    : session_(std::move(session)),
      decides_(std::move(decides)),
      format_(format),
      json_(json),
      read_(std::move(read)) {}

absl::StatusOr<MatchShell> MatchShell::Make(const MatchOptions& options, FileReader read) {
  RETURN_IF_ERROR(graph::MatchPolicy::Parse(options.policy).status());
  std::optional<SetFormat> format;
  if (!options.format.empty()) {
    ASSIGN_OR_RETURN(format, graph::ParseSetFormat(options.format));
  }
  ASSIGN_OR_RETURN(const std::string text, read(options.graph));
  const absl::StatusOr<std::string_view> load_format = LoadFormatOf(text);
  RETURN_IF_ERROR(Annotate(load_format.status(), options.graph));
  const ordered_json settings = {{"load_format", *load_format},
                                 {"matcher_policy", options.policy},
                                 {"prune_filters", kPruneFilters}};
  absl::StatusOr<std::unique_ptr<reapi::Session>> session =
      reapi::Session::Make(text, Dump(settings));
  RETURN_IF_ERROR(Annotate(session.status(), options.graph));
  std::unique_ptr<fluxion::Context> decides;
  if (!options.library.empty()) {
    ASSIGN_OR_RETURN(decides, OpenLibrary(options, (*session)->engine().graph()));
  }
  return MatchShell(*std::move(session), std::move(decides), format, options.json, std::move(read));
}

absl::StatusOr<std::string> MatchShell::Do(const std::vector<std::string>& command) {
  const std::span<const Command> known = Commands();
  const auto found = std::find_if(known.begin(), known.end(), [&command](const Command& one) {
    return command[0] == one.name || command[0] == one.abbreviation;
  });
  if (found == known.end()) {
    return InvalidArgument("unknown command \"{}\"; known are {}", command[0], CommandNames());
  }
  const Words words = Words(command).subspan(1);
  if (words.size() < found->least || words.size() > found->most) {
    return InvalidArgument("{}: wants \"{} {}\"", found->name, found->name, found->arguments);
  }
  ASSIGN_OR_RETURN(Reply reply, (this->*found->run)(words));
  if (reply.value.is_null()) return std::string();
  return json_ ? Dump(reply.value) + "\n" : std::move(reply.text);
}

int MatchShell::Run(std::istream& in, std::ostream& out, bool prompt) {
  bool failed = false;
  std::string line;
  while (!done_) {
    if (prompt) out << kPrompt << std::flush;
    if (!std::getline(in, line)) break;
    const absl::Status status = DoLine(line, out);
    if (!status.ok()) {
      failed = true;
      out << (json_ ? Dump({{"command", line}, {"error", Message(status)}})
                    : "error: " + Message(status))
          << "\n";
    }
    out << std::flush;
  }
  if (prompt && !done_) out << "\n";
  return failed ? 2 : refused_ ? 1 : 0;
}

absl::Status MatchShell::DoLine(const std::string& line, std::ostream& out) {
  if (!IsUtf8(line)) return InvalidArgument("a command must be UTF-8 text");
  std::istringstream stream(line);
  std::vector<std::string> command;
  for (std::string word; stream >> word;) command.push_back(std::move(word));
  if (command.empty() || command[0].starts_with('#')) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string answer, Do(command));
  out << answer;
  return absl::OkStatus();
}

absl::StatusOr<MatchShell::Reply> MatchShell::Match(Words words) {
  ASSIGN_OR_RETURN(const graph::MatchOperation operation, graph::ParseMatchOperation(words[0]));
  const std::string& file = words[1];
  ASSIGN_OR_RETURN(const std::string jobspec, read_(file));
  const JobNumber job = session_->NextJob();
  const absl::StatusOr<Placement> placement = Place(operation, jobspec, job);
  if (placement.ok()) return Granted(file, job, *placement);
  const bool busy = absl::IsResourceExhausted(placement.status());
  if (!busy && !absl::IsFailedPrecondition(placement.status())) {
    return Annotate(placement.status(), file);
  }
  ASSIGN_OR_RETURN(const graph::JobRequest request, graph::ParseJobRequest(jobspec));
  return Refused(file, busy ? "busy" : "unsatisfiable", session_->engine().Explain(request));
}

absl::StatusOr<Placement> MatchShell::Place(graph::MatchOperation operation,
                                            const std::string& jobspec,
                                            JobNumber job) {
  if (decides_ == nullptr) return session_->Match(operation, jobspec, job);
  ASSIGN_OR_RETURN(const fluxion::Context::Placed placed, decides_->Match(operation, jobspec, job));
  if (placed.resources.empty()) return Placement{};
  if (graph::Holds(operation)) return session_->Restore(job, placed.resources);
  ASSIGN_OR_RETURN(graph::ResourceSet found, graph::ReadResourceSet(placed.resources, resources()));
  return Placement{.reserved = placed.reserved,
                   .at_s = placed.at_s,
                   .holding = std::move(found.holding),
                   .resources = placed.resources};
}

absl::Status MatchShell::CheckNative(std::string_view command) const {
  if (decides_ == nullptr) return absl::OkStatus();
  return InvalidArgument("{}: only the native engine can", command);
}

MatchShell::Reply MatchShell::Granted(const std::string& file,
                                      JobNumber job,
                                      const Placement& placement) const {
  const Holding& holding = placement.holding;
  ordered_json value = {{"jobspec", file}};
  if (holding.vertices.empty()) {
    value["outcome"] = "satisfiable";
    return {file + ": satisfiable\n", std::move(value)};
  }
  std::string outcome = "fits";
  if (session_->engine().Find(job) != nullptr) {
    outcome = placement.reserved ? "reserved" : "allocated";
    value["job"] = job;
  }
  value["outcome"] = outcome;
  AddTimes(holding, &value);
  value["resources"] = JsonOf(holding);
  std::string text;
  if (!format_.has_value()) {
    if (value.contains("job")) outcome += fmt::format(" as job {}", job);
    text = fmt::format("{}: {}{}\n", file, outcome, TimesOf(holding));
  }
  return {text + TextOf(holding), std::move(value)};
}

MatchShell::Reply MatchShell::Refused(const std::string& file,
                                      std::string_view outcome,
                                      const GraphExplanation& why) {
  refused_ = true;
  ordered_json value = {{"jobspec", file}, {"outcome", outcome}};
  std::string text = fmt::format("{}: {}", file, outcome);
  // The explanation knows less than the match: it may find nothing that is missing.
  if (!why.missing.empty()) {
    value["missing"] = why.missing;
    value["reason"] = why.sentence;
    text += "; " + why.sentence;
  }
  return {text + "\n", std::move(value)};
}

absl::StatusOr<MatchShell::Reply> MatchShell::Explain(Words words) {
  const std::string& file = words[0];
  ASSIGN_OR_RETURN(const std::string jobspec, read_(file));
  const absl::StatusOr<graph::JobRequest> request = graph::ParseJobRequest(jobspec);
  RETURN_IF_ERROR(Annotate(request.status(), file));
  const GraphExplanation why = session_->engine().Explain(*request);
  Reply reply{fmt::format("{}: {}\n", file, why.sentence),
              {{"jobspec", file},
               {"missing", why.missing},
               {"reason", why.sentence},
               {"holders", HoldersOf(why)}}};
  for (const GraphExplanation::Holder& holder : why.holders) {
    reply.text += fmt::format(
        "  job {} holds {} of it{}\n", holder.job, holder.amount, UntilText(holder.until_s));
  }
  return reply;
}

absl::StatusOr<MatchShell::Reply> MatchShell::Cancel(Words words) {
  ASSIGN_OR_RETURN(const JobNumber job, ParseJob(words[0]));
  if (decides_ != nullptr && session_->engine().Find(job) != nullptr) {
    RETURN_IF_ERROR(decides_->Cancel(job));
  }
  RETURN_IF_ERROR(session_->Cancel(job));
  return Reply{fmt::format("job {}: cancelled\n", job), {{"job", job}, {"outcome", "cancelled"}}};
}

absl::StatusOr<MatchShell::Reply> MatchShell::CancelPart(Words words) {
  ASSIGN_OR_RETURN(const JobNumber job, ParseJob(words[0]));
  ASSIGN_OR_RETURN(const std::string resources, read_(words[1]));
  if (decides_ != nullptr) RETURN_IF_ERROR(decides_->CancelPart(job, resources));
  const absl::StatusOr<bool> all = session_->CancelPart(job, resources);
  RETURN_IF_ERROR(Annotate(all.status(), words[1]));
  return JobReply(job, session_->jobs().at(job));
}

MatchShell::Reply MatchShell::JobReply(JobNumber job, const JobInfo& info) const {
  const std::string_view outcome = OutcomeOf(info.mode);
  Reply reply{fmt::format("job {}: {}", job, outcome), {{"job", job}, {"outcome", outcome}}};
  if (const Holding* holding = session_->engine().Find(job); holding != nullptr) {
    AddTimes(*holding, &reply.value);
    reply.value["resources"] = JsonOf(*holding);
    reply.text += TimesOf(*holding) + "\n" + TextOf(*holding);
  } else {
    reply.text += "\n";
  }
  return reply;
}

absl::StatusOr<MatchShell::Reply> MatchShell::Info(Words words) {
  ASSIGN_OR_RETURN(const JobNumber job, ParseJob(words[0]));
  ASSIGN_OR_RETURN(const JobInfo info, session_->Info(job));
  return JobReply(job, info);
}

absl::StatusOr<MatchShell::Reply> MatchShell::List(Words /*words*/) {
  Reply reply{"", {{"jobs", ordered_json::array()}}};
  for (const auto& [job, info] : session_->jobs()) {
    const std::string_view outcome = OutcomeOf(info.mode);
    ordered_json value = {{"job", job}, {"outcome", outcome}};
    const Holding* holding = session_->engine().Find(job);
    if (holding != nullptr) AddTimes(*holding, &value);
    reply.value["jobs"].push_back(std::move(value));
    reply.text += fmt::format(
        "job {}: {}{}\n", job, outcome, holding == nullptr ? std::string() : TimesOf(*holding));
  }
  return reply;
}

absl::StatusOr<MatchShell::Reply> MatchShell::Find(Words words) {
  ASSIGN_OR_RETURN(const Holding found,
                   session_->FindVertices(fmt::format("{}", fmt::join(words, " "))));
  if (found.vertices.empty()) return Reply{"nothing meets this\n", {{"resources", nullptr}}};
  return Reply{format_.has_value() ? TextOf(found) : DrawHolding(resources(), Unmarked(found)),
               {{"resources", JsonOf(found)}}};
}

absl::StatusOr<MatchShell::Reply> MatchShell::SetStatus(Words words) {
  if (words[1] != "up" && words[1] != "down") {
    return InvalidArgument("set-status: must be up or down, is \"{}\"", words[1]);
  }
  if (decides_ != nullptr) RETURN_IF_ERROR(decides_->SetUp(words[0], words[1] == "up"));
  RETURN_IF_ERROR(session_->SetUp(words[0], words[1] == "up"));
  return GetStatus(words.first(1));
}

absl::StatusOr<MatchShell::Reply> MatchShell::GetStatus(Words words) {
  ASSIGN_OR_RETURN(const bool up, session_->IsUp(words[0]));
  const std::string status = up ? "up" : "down";
  return Reply{fmt::format("{}: {}\n", words[0], status), {{"path", words[0]}, {"status", status}}};
}

absl::StatusOr<MatchShell::Reply> MatchShell::SetProperty(Words words) {
  RETURN_IF_ERROR(CheckNative("set-property"));
  const size_t equals = words[1].find('=');
  if (equals == 0 || equals == std::string::npos) {
    return InvalidArgument("set-property: must be KEY=VALUE, is \"{}\"", words[1]);
  }
  RETURN_IF_ERROR(
      session_->SetProperty(words[0], words[1].substr(0, equals), words[1].substr(equals + 1)));
  return GetProperty(words.first(1));
}

absl::StatusOr<MatchShell::Reply> MatchShell::GetProperty(Words words) {
  const auto v = resources().FindPath(words[0]);
  if (!v.has_value()) return InvalidArgument("the graph has no path \"{}\"", words[0]);
  Reply reply{words[0] + ":", {{"path", words[0]}, {"properties", ordered_json::object()}}};
  for (const auto& [key, value] : resources().vertex(*v).properties) {
    reply.text += fmt::format(" {}={}", key, value);
    reply.value["properties"][key] = value;
  }
  reply.text += "\n";
  return reply;
}

absl::StatusOr<MatchShell::Reply> MatchShell::Attach(Words words) {
  RETURN_IF_ERROR(CheckNative("attach"));
  ASSIGN_OR_RETURN(const std::string part, read_(words[0]));
  RETURN_IF_ERROR(Annotate(session_->AddSubgraph(part), words[0]));
  return Reply{words[0] + ": attached\n", {{"attached", words[0]}}};
}

absl::StatusOr<MatchShell::Reply> MatchShell::Remove(Words words) {
  RETURN_IF_ERROR(CheckNative("remove"));
  RETURN_IF_ERROR(session_->RemoveSubgraph(words[0]));
  return Reply{words[0] + ": removed\n", {{"removed", words[0]}}};
}

absl::StatusOr<MatchShell::Reply> MatchShell::Help(Words /*words*/) {
  Reply reply{"", {{"commands", ordered_json::array()}}};
  for (const Command& command : Commands()) {
    const std::string usage = fmt::format("{} {}", command.name, command.arguments);
    reply.text += fmt::format("{:<29}{:<4}{}\n", usage, command.abbreviation, command.what);
    reply.value["commands"].push_back(
        {{"usage", usage}, {"abbreviation", command.abbreviation}, {"what", command.what}});
  }
  reply.text += fmt::format("OPERATION: {}\n", fmt::join(graph::kMatchOperations, ", "));
  return reply;
}

absl::StatusOr<MatchShell::Reply> MatchShell::Quit(Words /*words*/) {
  done_ = true;
  return Reply{};
}

std::string MatchShell::TextOf(const Holding& holding) const {
  if (!format_.has_value()) return DrawHolding(resources(), holding);
  std::string text = graph::WriteResourceSet(resources(), holding, *format_);
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

ordered_json MatchShell::JsonOf(const Holding& holding) const {
  const SetFormat format = format_.value_or(SetFormat::kRv1);
  std::string text = graph::WriteResourceSet(resources(), holding, format);
  if (format == SetFormat::kSimple) return text;
  return ordered_json::parse(text);
}

}  // namespace fluxqueue::cli
