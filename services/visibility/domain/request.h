// What a request to the aggregated API asks, by its method and path below
// /apis/visibility.fluxqueue.io/v1alpha1:
//
//   GET   jobs, namespaces/NS/jobs, claims, queues          lists
//   GET   namespaces/NS/jobs/NAME, claims/ID, queues/NAME
//   GET   …/NAME/explanation
//   POST  …/NAME/cancel, hold, priority, move               commands; the body says with what
//
// A job is called as its FluxJob is ("job-hello"), a claim by its id. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace fluxqueue::visibility {

enum class Verb { kList, kGet, kExplain, kCancel, kHold, kRelease, kPriority, kMove };

struct Ask {
  Verb verb = Verb::kList;
  std::string resource{};  // "jobs", "claims", "queues"
  std::string space{};     // empty: all namespaces
  std::string name{};
  // Of lists.
  int limit = 0;
  std::string continue_token{};
  bool ended = false;   // the field selector ended=true: also those that have ended
  std::string queue{};  // the field selector queue=NAME
  // Of commands.
  std::string client_id{};
  int32_t priority = 0;
  std::string queue_wanted{};
};

// `path` as it stands below the group's version, without a slash at its beginning. NotFound: there
// is no such resource; Unimplemented: no such verb on it; InvalidArgument: what stands where a name
// or a value belongs, and what is allowed there.
absl::StatusOr<Ask> ReadAsk(std::string_view method,
                            std::string_view path,
                            std::string_view query,
                            std::string_view body);

// Of a command's body: JSON, or nothing is said of it, which the API server takes for JSON too.
// Else a page in somebody's browser could send one in his name.
absl::Status CheckContentType(std::string_view content_type);

// For metrics: "list", "get", "explanation" ….
std::string_view VerbName(Verb verb);

}  // namespace fluxqueue::visibility
