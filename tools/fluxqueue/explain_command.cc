// explain: why a job waits, who is ahead of it, when it is to start, and what would let it start
// sooner; as the queue that holds its pool says it, from memory.
#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/time_util.h>
#include <nlohmann/json.hpp>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/job_call.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

namespace api = queue::v1;
using google::protobuf::util::TimeUtil;

void PrintSentences(const char* title,
                    const google::protobuf::RepeatedPtrField<std::string>& sentences) {
  if (sentences.empty()) return;
  fmt::print("\n{}\n", title);
  for (const std::string& sentence : sentences) fmt::print("  - {}\n", sentence);
}

// "starts 12:30:00, forecast  (ahead 4711)"
std::string Told(const job_store::Promise& promise, int64_t now_ms) {
  const std::string why =
      promise.cause.empty()
          ? ""
          : fmt::format("  ({}{}{})", promise.cause, promise.by.empty() ? "" : " ", promise.by);
  if (promise.kept) return "it has its nodes" + why;
  if (promise.start_ms == 0) return "no start any more" + why;
  return fmt::format("starts {}, {}{}",
                     ShortTime(promise.start_ms, now_ms),
                     promise.firm ? "firm" : "forecast",
                     why);
}

void PrintPromises(const std::vector<job_store::Promise>& promises, int64_t now_ms) {
  if (promises.size() < 2) return;
  fmt::print("\nWhat it was told\n");
  for (const job_store::Promise& promise : promises) {
    fmt::print("  {}  {}\n", ShortTime(promise.told_ms, now_ms), Told(promise, now_ms));
  }
}

nlohmann::json ToJson(const job_store::Promise& promise) {
  return {{"toldMs", promise.told_ms},
          {"startMs", promise.start_ms},
          {"firm", promise.firm},
          {"kept", promise.kept},
          {"cause", promise.cause},
          {"by", promise.by}};
}

void Print(const api::ExplainResponse& answer,
           const job_store::Job& job,
           const std::vector<job_store::Promise>& promises,
           const Context& context) {
  const int64_t now = context.Now().count();
  fmt::print("{} ({}): {}{}\n",
             job.FullName(),
             job.id,
             Paint(job.state, StateColour(job.state), context.colour),
             answer.job().reason().empty() ? "" : fmt::format(" ({})", answer.job().reason()));
  if (answer.has_expected_start()) {
    const int64_t start = TimeUtil::TimestampToMilliseconds(answer.expected_start());
    fmt::print("\nStarts {}, in {}; {}\n",
               ShortTime(start, now),
               ShortDuration(std::chrono::floor<std::chrono::seconds>(
                   Millis(std::max<int64_t>(0, start - now)))),
               answer.assumption());
  }
  PrintSentences(job.state == "Pending" ? "Why it waits" : "It does not wait", answer.why());
  PrintSentences("What would let it start sooner", answer.sooner());
  PrintPromises(promises, now);
  if (answer.ahead().empty()) return;
  Table table({"AHEAD OF IT", "STATE", "REASON", "SLOTS", "START"});
  for (const api::Job& other : answer.ahead()) {
    const std::string name =
        other.namespace_().empty() ? other.name() : other.namespace_() + "/" + other.name();
    table.Add({other.id().empty() ? "(of others)" : name,
               "Pending",
               other.reason(),
               fmt::format("{}", other.slots()),
               other.has_start() ? ShortTime(TimeUtil::TimestampToMilliseconds(other.start()), now)
                                 : "-"});
  }
  fmt::print("\n{}", table.Render(context.colour));
  const int64_t more = answer.position() - 1 - answer.ahead_size();
  if (more > 0) fmt::print("and {} more\n", more);
}

absl::StatusOr<int> Run(const Context& context, const std::string& wanted) {
  ASSIGN_OR_RETURN(const std::unique_ptr<JobCall> reached, ReachJob(context, wanted));
  const job_store::Job& job = reached->job();
  ASSIGN_OR_RETURN(const api::ExplainResponse answer, reached->Explain());
  ASSIGN_OR_RETURN(const std::vector<job_store::Promise> promises, reached->Promises());
  if (context.structured()) {
    std::string text;
    google::protobuf::util::JsonPrintOptions options;
    options.always_print_primitive_fields = true;
    if (!google::protobuf::util::MessageToJsonString(answer, &text, options).ok()) {
      return MakeStatus(absl::StatusCode::kInternal, "the answer cannot be written as JSON");
    }
    nlohmann::json structured = nlohmann::json::parse(text);
    structured["promises"] = nlohmann::json::array();
    for (const job_store::Promise& promise : promises) {
      structured["promises"].push_back(ToJson(promise));
    }
    fmt::print("{}", context.Structured(structured));
    return 0;
  }
  Print(answer, job, promises, context);
  return 0;
}

}  // namespace

void RegisterExplain(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("explain",
                                     "Why a job waits: its place, who is ahead of it, which limit "
                                     "or resource holds it, when it is "
                                     "to start, and what would let it start sooner");
  const auto job = std::make_shared<std::string>();
  sub->group("Jobs");
  sub->add_option("JOB", *job, "Its id, its name, or NAMESPACE/NAME")->required()->type_name("JOB");
  sub->footer(
      "The replica of the queue that holds the job's pool answers, from memory.\n\n"
      "Examples:\n"
      "  fluxqueue explain team/train\n"
      "  fluxqueue explain train -o json | jq -r '.why[]'");
  sub->callback(
      [&context, job] { context.command = [&context, job] { return Run(context, *job); }; });
}

}  // namespace fluxqueue::cli
