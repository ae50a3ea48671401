#include "libs/access/rights.h"

#include "fmt/format.h"

namespace fluxqueue::access {
namespace {

constexpr std::string_view kJobs = "jobs";
constexpr std::string_view kClaims = "claims";

std::string_view Subresource(Act act) {
  switch (act) {
    case Act::kView:
      return "";
    case Act::kCancel:
      return "cancel";
    case Act::kHold:
      return "hold";
    case Act::kPrioritise:
      return "priority";
    case Act::kMove:
      return "move";
  }
  return "";
}

}  // namespace

Right RightTo(Act act, const Job& job) {
  return {.verb = act == Act::kView ? "get" : "create",
          .resource = std::string(job.claim ? kClaims : kJobs),
          .subresource = std::string(Subresource(act)),
          .space = job.claim ? "" : job.space,
          .name = job.name};
}

Right RightToJobs(std::string_view verb, std::string_view space) {
  return {.verb = std::string(verb), .resource = std::string(kJobs), .space = std::string(space)};
}

Right RightToClaims(std::string_view verb) {
  return {.verb = std::string(verb), .resource = std::string(kClaims)};
}

Right RightToClaim(std::string_view queue) {
  return {.verb = "create", .resource = std::string(kClaims), .name = std::string(queue)};
}

Right RightToQueues(std::string_view name) {
  return {.verb = name.empty() ? "list" : "get", .resource = "queues", .name = std::string(name)};
}

Right RightToAbandon(std::string_view pool) {
  return {.verb = "create", .resource = "pools", .subresource = "cycle", .name = std::string(pool)};
}

Right RightToLookAt(std::string_view pool) {
  return {.verb = "get", .resource = "pools", .subresource = "graph", .name = std::string(pool)};
}

Right RightToGraphs() {
  return {.verb = "create", .resource = "graphs"};
}

std::string_view SubjectVerb(Act act) {
  switch (act) {
    case Act::kView:
      return "view";
    case Act::kCancel:
      return "cancel";
    case Act::kHold:
      return "hold";
    case Act::kPrioritise:
      return "prioritise";
    case Act::kMove:
      return "move";
  }
  return "";
}

bool IsHisOwn(Act act, const Job& job, const User& user) {
  return job.claim && (act == Act::kView || act == Act::kCancel) && !user.name.empty() &&
         job.user == user.name;
}

std::string_view TenantOf(std::string_view user) {
  constexpr std::string_view kAccount = "system:serviceaccount:";
  return user.starts_with(kAccount) ? user.substr(0, user.find(':', kAccount.size())) : user;
}

std::string Refusal(const User& user,
                    const Right& right,
                    std::string_view verb,
                    std::string_view queue) {
  std::string text = fmt::format(
      "user '{}' may not {} {}{}{}{}{}: a Role or ClusterRole gives it that has the verb {} for "
      "{}{}{} in the API group {}",
      user.name,
      right.verb,
      right.resource,
      right.subresource.empty() ? "" : "/" + right.subresource,
      right.name.empty() ? "" : " '" + right.name + "'",
      right.space.empty() ? "" : " in namespace ",
      right.space.empty() ? "" : "'" + right.space + "'",
      right.verb,
      right.resource,
      right.subresource.empty() ? "" : "/",
      right.subresource,
      kGroup);
  if (!verb.empty() && !queue.empty()) {
    text += fmt::format(", or the verb {} in spec.subjects of FluxQueue '{}'", verb, queue);
  }
  return text;
}

}  // namespace fluxqueue::access
