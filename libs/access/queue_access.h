// Whose jobs a FluxQueue takes, and what it lets its subjects do: what stands in it, and in those
// above it. Sentences begin with the FluxQueue, and say what to do.
//
// Pure, thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::access {

using QueuesByName = std::map<std::string, kubernetes::FluxQueue, std::less<>>;

// A FluxQueue, then those above it. Never empty.
using Way = std::vector<const kubernetes::FluxQueue*>;

// Of a FluxQueue, a FluxWindow.
template <typename Object>
std::string PoolOfObject(const Object& object) {
  return object.pool.empty() ? std::string(kubernetes::kDefaultPool) : object.pool;
}

// Why the parent that the queue names does not count, until somebody mends it: it is not there, is
// in another pool, or is below the queue. Unset: it counts, or none is named.
std::optional<std::string> ParentProblem(const kubernetes::FluxQueue& queue,
                                         const QueuesByName& queues);

// The queue and those above it, as far as parents count.
Way WayUp(const kubernetes::FluxQueue& queue, const QueuesByName& queues);

// One of them says who may submit: only they may.
bool NamesSubmitters(const Way& way);

// One of them names the user, or a group of his, with the verb.
bool Grants(const Way& way,
            std::string_view verb,
            std::string_view user,
            const std::vector<std::string>& groups);

// Whose job it is.
struct Maker {
  std::string_view user;  // empty: not known
  std::string_view space;
  const kubernetes::StringMap& labels;  // of the namespace
};

// Why they do not take jobs of this maker: his namespace is not selected, or he is no member; or
// none of them says whom they take, and the parent that was to say it does not count.
std::optional<std::string> TakesProblem(const Maker& maker, const Way& way);
// Why this user may not submit.
std::optional<std::string> SubmitProblem(std::string_view user,
                                         const std::vector<std::string>& groups,
                                         const Way& way);
// Why no job may have this priority. `before`: that it has already, which it may keep.
std::optional<std::string> PriorityProblem(int32_t priority,
                                           std::optional<int32_t> before,
                                           const Way& way);

}  // namespace fluxqueue::access
