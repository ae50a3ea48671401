#include "services/visibility/domain/objects.h"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>
#include <nlohmann/json.hpp>

#include "libs/base/clock.h"
#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/kubernetes/json_text.h"
#include "libs/visibility_json/visibility_json.h"

namespace fluxqueue::visibility {
namespace {

using google::protobuf::util::TimeUtil;
using nlohmann::json;

constexpr size_t kMostMessage = 2000;

json Object(const char* kind, json metadata) {
  return {{"kind", kind},
          {"apiVersion", fmt::format("{}/{}", kGroup, kVersion)},
          {"metadata", std::move(metadata)}};
}

bool IsClaim(const queue::v1::Job& job) {
  return job.namespace_().empty();
}

json MetadataOf(const queue::v1::Job& job) {
  json metadata = {{"name", ObjectName(job)}, {"uid", job.id()}};
  if (!IsClaim(job)) metadata["namespace"] = job.namespace_();
  if (job.has_created()) {
    metadata["creationTimestamp"] =
        FormatSeconds(Millis(TimeUtil::TimestampToMilliseconds(job.created())));
  }
  return metadata;
}

json ObjectOf(const queue::v1::Job& job) {
  json object = Object(IsClaim(job) ? "Claim" : "Job", MetadataOf(job));
  object["status"] = ToJson(job);
  return object;
}

json ObjectOf(const queue::v1::QueueInfo& queue) {
  json object = Object("Queue", {{"name", queue.queue()}});
  object["status"] = ToJson(queue);
  return object;
}

struct Column {
  const char* name;
  const char* type;
  const char* description;
  int priority = 0;  // above 0: of the wide table
};

json Table(const std::vector<Column>& columns, json rows, const std::string& continue_token) {
  json definitions = json::array();
  for (const Column& column : columns) {
    definitions.push_back({{"name", column.name},
                           {"type", column.type},
                           {"format", std::string_view(column.name) == "Name" ? "name" : ""},
                           {"description", column.description},
                           {"priority", column.priority}});
  }
  json metadata = json::object();
  if (!continue_token.empty()) metadata["continue"] = continue_token;
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", std::move(metadata)},
          {"columnDefinitions", std::move(definitions)},
          {"rows", std::move(rows)}};
}

json Row(json cells, json metadata) {
  return {{"cells", std::move(cells)},
          {"object",
           {{"kind", "PartialObjectMetadata"},
            {"apiVersion", "meta.k8s.io/v1"},
            {"metadata", std::move(metadata)}}}};
}

// As kubectl writes ages: two figures at most.
std::string Age(int64_t seconds) {
  if (seconds < 0) return "0s";
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 7200) return fmt::format("{}m", seconds / 60);
  if (seconds < 172'800) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86'400);
}

const std::vector<Column>& JobColumns() {
  static const std::vector<Column> kColumns = {
      {"Name", "string", "The FluxJob's name, or the claim's id."},
      {"Queue", "string", "The FluxQueue that it waits or waited in."},
      {"State", "string", "Where it is in its life."},
      {"Reason", "string", "Why, in one word."},
      {"Slots", "integer", "Equal places (pods) that it asks for or holds."},
      {"Start", "string", "When it started, or is expected to."},
      {"Age", "string", "Since it was made."},
      {"User", "string", "Who made it.", 1},
      {"Priority", "integer", "A higher one goes first.", 1},
      {"Message", "string", "The reason in a sentence.", 1}};
  return kColumns;
}

json RowOf(const queue::v1::Job& job, int64_t now_ms) {
  const int64_t age = now_ms / 1000 - TimeUtil::TimestampToSeconds(job.created());
  return Row(
      {ObjectName(job),
       job.queue(),
       StateName(job.state()),
       job.reason(),
       job.slots(),
       job.has_start() ? FormatSeconds(Millis(TimeUtil::TimestampToMilliseconds(job.start()))) : "",
       Age(age),
       job.user(),
       job.priority(),
       job.message()},
      MetadataOf(job));
}

const std::vector<Column>& QueueColumns() {
  static const std::vector<Column> kColumns = {
      {"Name", "string", "The FluxQueue."},
      {"Pool", "string", "Whose nodes it uses."},
      {"Strategy", "string", "How its jobs are tried."},
      {"Waiting", "integer", "Jobs that have no nodes yet."},
      {"Holding", "integer", "Jobs that hold nodes."},
      {"Priority", "integer", "Queues with a higher one are served first.", 1},
      {"Parent", "string", "The queue of which it is a part.", 1}};
  return kColumns;
}

json RowOf(const queue::v1::QueueInfo& queue) {
  int64_t waiting = 0;
  int64_t holding = 0;
  for (const queue::v1::QueueInfo::Count& count : queue.live()) {
    const bool waits = count.state() <= queue::v1::STATE_PENDING;
    (waits ? waiting : holding) += count.jobs();
  }
  return Row({queue.queue(),
              queue.pool(),
              queue.strategy(),
              waiting,
              holding,
              queue.priority(),
              queue.parent()},
             {{"name", queue.queue()}});
}

json List(const char* kind, json items, const std::string& continue_token) {
  json metadata = {{"resourceVersion", ""}};
  if (!continue_token.empty()) metadata["continue"] = continue_token;
  json list = Object(kind, std::move(metadata));
  list["items"] = std::move(items);
  return list;
}

struct Code {
  int code;
  const char* reason;
};

Code CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return {400, "BadRequest"};
    case absl::StatusCode::kUnauthenticated:
      return {401, "Unauthorized"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "Forbidden"};
    case absl::StatusCode::kNotFound:
      return {404, "NotFound"};
    case absl::StatusCode::kUnimplemented:
      return {405, "MethodNotAllowed"};
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return {409, "Conflict"};
    case absl::StatusCode::kResourceExhausted:
      return {429, "TooManyRequests"};
    case absl::StatusCode::kUnavailable:
      return {503, "ServiceUnavailable"};
    case absl::StatusCode::kDeadlineExceeded:
      return {504, "Timeout"};
    default:
      return {500, "InternalError"};
  }
}

}  // namespace

std::string JobText(const queue::v1::GetJobResponse& answer, bool as_table, int64_t now_ms) {
  if (as_table) {
    return kubernetes::JsonText(
        Table(JobColumns(), json::array({RowOf(answer.job(), now_ms)}), ""));
  }
  json object = ObjectOf(answer.job());
  json rest = ToJson(answer);
  rest.erase("job");
  object.update(rest);
  return kubernetes::JsonText(object);
}

std::string JobListText(const queue::v1::ListJobsResponse& answer, bool as_table, int64_t now_ms) {
  json items = json::array();
  for (const queue::v1::Job& job : answer.jobs()) {
    items.push_back(as_table ? RowOf(job, now_ms) : ObjectOf(job));
  }
  return kubernetes::JsonText(as_table
                                  ? Table(JobColumns(), std::move(items), answer.next_page_token())
                                  : List("JobList", std::move(items), answer.next_page_token()));
}

std::string QueueText(const queue::v1::QueueInfo& queue, bool as_table) {
  return kubernetes::JsonText(as_table ? Table(QueueColumns(), json::array({RowOf(queue)}), "")
                                       : ObjectOf(queue));
}

std::string QueueListText(const queue::v1::ListQueuesResponse& answer, bool as_table) {
  json items = json::array();
  for (const queue::v1::QueueInfo& queue : answer.queues()) {
    items.push_back(as_table ? RowOf(queue) : ObjectOf(queue));
  }
  return kubernetes::JsonText(as_table ? Table(QueueColumns(), std::move(items), "")
                                       : List("QueueList", std::move(items), ""));
}

std::string ExplanationText(const queue::v1::ExplainResponse& answer) {
  json object = Object("Explanation", MetadataOf(answer.job()));
  object["status"] = ToJson(answer);
  return kubernetes::JsonText(object);
}

std::string CommandText(const queue::v1::Job& job, bool repeated) {
  json object = Object("Command", MetadataOf(job));
  object["status"] = {{"job", ToJson(job)}, {"repeated", repeated}};
  return kubernetes::JsonText(object);
}

Failure FailureOf(const absl::Status& status) {
  const Code code = CodeOf(status.code());
  json object = {{"kind", "Status"},
                 {"apiVersion", "v1"},
                 {"metadata", json::object()},
                 {"status", "Failure"},
                 {"message", Clean(Message(status), kMostMessage)},
                 {"reason", code.reason},
                 {"code", code.code}};
  if (code.code == 503 || code.code == 429) object["details"] = {{"retryAfterSeconds", 1}};
  return {code.code, kubernetes::JsonText(object)};
}

bool WantsTable(std::string_view accept) {
  const std::string_view first = accept.substr(0, accept.find(','));
  return first.find("as=Table") != first.npos && first.find("v=v1;") != first.npos;
}

}  // namespace fluxqueue::visibility
