#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/ownership.h"

#include "tools/fluxqueue/doctor.h"

namespace fluxqueue::cli {
namespace {

constexpr const char* kAbout = "past the queue";
constexpr size_t kMostNamed = 5;

template <typename Object>
absl::StatusOr<std::vector<Object>> ListAll(kubernetes::Client& client,
                                            const kubernetes::Resource& resource,
                                            const kubernetes::Selector& selector,
                                            absl::StatusOr<Object> (*parse)(std::string_view)) {
  std::vector<Object> objects;
  RETURN_IF_ERROR(client
                      .List(resource,
                            selector,
                            [&](std::string_view text) -> absl::Status {
                              ASSIGN_OR_RETURN(Object object, parse(text));
                              objects.push_back(std::move(object));
                              return absl::OkStatus();
                            })
                      .status());
  return objects;
}

void JudgeEnforce(const kubernetes::Namespace& space, Findings* findings) {
  const auto said = space.labels.find(kubernetes::kEnforceLabel);
  if (said == space.labels.end() || kubernetes::IsStrict(space)) return;
  findings->Warn(
      "namespace " + space.name,
      fmt::format(
          "the label {} is \"{}\" and has no effect", kubernetes::kEnforceLabel, said->second),
      fmt::format("take it off, or set it to \"{}\" in a namespace with {}=true",
                  kubernetes::kEnforceStrict,
                  kubernetes::kManagedLabel));
}

}  // namespace

void JudgeBypass(const std::vector<kubernetes::Namespace>& spaces,
                 const std::vector<kubernetes::ObjectMeta>& pods,
                 Findings* findings) {
  std::map<std::string_view, bool> managed;
  for (const kubernetes::Namespace& space : spaces) {
    JudgeEnforce(space, findings);
    managed[space.name] = kubernetes::IsManaged(space);
  }
  std::vector<std::string> past;
  for (const kubernetes::ObjectMeta& pod : pods) {
    if (!managed[pod.namespace_name] || kubernetes::NodesOwn(pod)) continue;
    past.push_back(fmt::format("{}/{}", pod.namespace_name, pod.name));
  }
  if (past.empty()) return findings->Ok(kAbout, "nothing runs in managed namespaces");
  const size_t named = std::min(past.size(), kMostNamed);
  findings->Warn(kAbout,
                 fmt::format("{} pods run in managed namespaces and have not been through it: {}{}",
                             past.size(),
                             fmt::join(past.begin(), past.begin() + named, ", "),
                             named < past.size() ? ", …" : ""),
                 "deploy/docs/runbooks/FluxqueueQueueBypassed.md");
}

void ExamineBypass(kubernetes::Client& client, Findings* findings) {
  const auto spaces = ListAll(client, kubernetes::kNamespaces, {}, kubernetes::ParseNamespace);
  if (!spaces.ok()) {
    return findings->Warn(kAbout, Message(spaces.status()), "we need list of namespaces to look");
  }
  const auto pods = ListAll(client,
                            kubernetes::kPods,
                            {.labels = std::string(kubernetes::kBypassLabels),
                             .fields = std::string(kubernetes::kBypassFields)},
                            kubernetes::ParseMeta);
  if (!pods.ok()) {
    return findings->Warn(kAbout, Message(pods.status()), "we need list of pods to look");
  }
  JudgeBypass(*spaces, *pods, findings);
}

}  // namespace fluxqueue::cli
