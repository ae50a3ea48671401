#include "tools/fluxqueue/cluster_api.h"

#include <utility>

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/http/client.h"
#include "libs/model/job_state.h"
#include "libs/visibility_json/visibility_json.h"

#include "tools/fluxqueue/kubectl.h"

namespace fluxqueue::cli {
namespace {

using google::protobuf::util::TimeUtil;
using nlohmann::json;

// Those whose FluxJob may have the name.
constexpr const char* kKinds[] = {"job", "pod"};

std::string Root() {
  return fmt::format("/apis/{}/{}", visibility::kGroup, visibility::kVersion);
}

std::string PathOf(const std::string& space, const std::string& name) {
  return space.empty() ? fmt::format("{}/claims/{}", Root(), name)
                       : fmt::format("{}/namespaces/{}/jobs/{}", Root(), space, name);
}

std::string PathOf(const queue::v1::Job& job) {
  return PathOf(job.namespace_(), visibility::ObjectName(job));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterApi>> ClusterApi::Reach(const Context& context) {
  if (!context.AboutCluster()) return nullptr;
  std::unique_ptr<ClusterApi> api(new ClusterApi(context.cluster));
  const absl::Status served = api->Get(Root()).status();
  if (absl::IsNotFound(served)) return nullptr;
  RETURN_IF_ERROR(Annotate(served, Root()));
  return api;
}

absl::StatusOr<json> ClusterApi::Ask(std::vector<std::string> arguments,
                                     const std::string& input) const {
  if (!access_.kubeconfig.empty()) arguments.push_back("--kubeconfig=" + access_.kubeconfig);
  if (!access_.context.empty()) arguments.push_back("--context=" + access_.context);
  ASSIGN_OR_RETURN(const KubectlAnswer answer, RunKubectl(arguments, input));
  if (answer.status != 0) return ErrorOfKubectl(answer.error);
  json object = json::parse(answer.output, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Unavailable("kubectl's answer is no JSON object");
  return object;
}

absl::StatusOr<json> ClusterApi::Get(const std::string& path) const {
  return Ask({"get", "--raw", path}, "");
}

std::string ClusterApi::OwnNamespace() const {
  const auto config = Ask({"config", "view", "--minify", "-o", "json"}, "");
  if (!config.ok()) return "default";
  const json contexts = config->value("contexts", json::array());
  const json context =
      contexts.empty() ? json::object() : contexts[0].value("context", json::object());
  const std::string space = context.value("namespace", "");
  return space.empty() ? "default" : space;
}

absl::StatusOr<std::vector<job_store::Job>> ClusterApi::List(const std::string& path,
                                                             const ApiFilter& filter,
                                                             bool* more) const {
  std::string query = "?limit=250";
  std::string selector = filter.ended ? "ended=true" : "";
  if (!filter.queue.empty()) {
    selector += fmt::format("{}queue={}", selector.empty() ? "" : ",", filter.queue);
  }
  if (!selector.empty()) query += "&fieldSelector=" + http::UrlEscape(selector);
  std::vector<job_store::Job> jobs;
  std::string next;
  do {
    ASSIGN_OR_RETURN(
        const json list,
        Get(path + query + (next.empty() ? "" : "&continue=" + http::UrlEscape(next))));
    for (const json& item : list.value("items", json::array())) {
      queue::v1::Job job;
      RETURN_IF_ERROR(visibility::FromJson(item.value("status", json::object()), &job));
      jobs.push_back(FromMessage(job));
    }
    next = list.value("metadata", json::object()).value("continue", "");
  } while (!next.empty() && jobs.size() < kMostJobs);
  *more = *more || !next.empty();
  return jobs;
}

absl::StatusOr<std::vector<job_store::Job>> ClusterApi::Jobs(const ApiFilter& filter,
                                                             bool* more,
                                                             std::string* space) const {
  const auto of = [](const std::string& name) {
    return fmt::format("{}/namespaces/{}/jobs", Root(), name);
  };
  *space = filter.space;
  if (!space->empty()) return List(of(*space), filter, more);
  auto all = List(Root() + "/jobs", filter, more);
  if (!absl::IsPermissionDenied(all.status())) return all;
  *space = OwnNamespace();
  return List(of(*space), filter, more);
}

absl::StatusOr<queue::v1::GetJobResponse> ClusterApi::JobAt(const std::string& path) const {
  ASSIGN_OR_RETURN(json object, Get(path));
  object["job"] = object.value("status", json::object());
  queue::v1::GetJobResponse answer;
  RETURN_IF_ERROR(visibility::FromJson(std::move(object), &answer));
  return answer;
}

absl::StatusOr<queue::v1::GetJobResponse> ClusterApi::Job(const std::string& wanted) const {
  const size_t slash = wanted.find('/');
  const std::string space = slash == wanted.npos ? OwnNamespace() : wanted.substr(0, slash);
  const std::string name = slash == wanted.npos ? wanted : wanted.substr(slash + 1);
  for (const char* kind : kKinds) {
    auto answer =
        JobAt(PathOf(http::UrlEscape(space), http::UrlEscape(fmt::format("{}-{}", kind, name))));
    if (!absl::IsNotFound(answer.status())) return answer;
  }
  if (slash == wanted.npos) {
    auto claim = JobAt(PathOf("", http::UrlEscape(wanted)));
    const bool none = absl::IsNotFound(claim.status()) || absl::IsPermissionDenied(claim.status());
    if (!none) return claim;
  }
  return MakeStatus(absl::StatusCode::kNotFound,
                    "there is no job {} in namespace {}, or you may not see it; name it "
                    "NAMESPACE/NAME, not by its id; fluxqueue jobs lists those that live",
                    name,
                    space);
}

absl::StatusOr<queue::v1::ExplainResponse> ClusterApi::Explain(const queue::v1::Job& job) const {
  ASSIGN_OR_RETURN(const json object, Get(PathOf(job) + "/explanation"));
  queue::v1::ExplainResponse answer;
  RETURN_IF_ERROR(visibility::FromJson(object.value("status", json::object()), &answer));
  return answer;
}

absl::Status ClusterApi::Command(const queue::v1::Job& job,
                                 const std::string& command,
                                 const json& spec) const {
  const json body = {{"spec", spec}};
  return Ask({"create", "--raw", fmt::format("{}/{}", PathOf(job), command), "-f", "-"},
             body.dump())
      .status();
}

job_store::Job FromMessage(const queue::v1::Job& job) {
  const std::string state = visibility::StateName(job.state());
  const auto known = model::ParseJobState(state);
  return {.id = job.id(),
          .pool = job.pool(),
          .queue = job.queue(),
          .space = job.namespace_(),
          .name = job.name(),
          .kind = job.kind(),
          .user = job.user(),
          .state = state,
          .version = static_cast<int64_t>(job.version()),
          .attempt = job.attempt(),
          .reason = job.reason(),
          .message = job.message(),
          .slots = job.slots(),
          .most_slots = job.max_slots(),
          .priority = job.priority(),
          .created_ms = TimeUtil::TimestampToMilliseconds(job.created()),
          .start_ms = TimeUtil::TimestampToMilliseconds(job.start()),
          .updated_ms = TimeUtil::TimestampToMilliseconds(job.updated()),
          .ended = known.has_value() && model::IsTerminal(*known),
          .nodes = {job.nodes().begin(), job.nodes().end()},
          .more_nodes = job.node_count() - static_cast<size_t>(job.nodes_size())};
}

}  // namespace fluxqueue::cli
