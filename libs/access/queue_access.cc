#include "libs/access/queue_access.h"

#include <algorithm>
#include <set>

#include "fmt/format.h"

namespace fluxqueue::access {
namespace {

// The way up comes back to the queue.
bool IsInCycle(const kubernetes::FluxQueue& queue, const QueuesByName& queues) {
  std::set<std::string_view> seen;
  auto at = queues.find(queue.parent);
  while (at != queues.end() && seen.insert(at->first).second) {
    if (at->first == queue.meta.name) return true;
    at = queues.find(at->second.parent);
  }
  return false;
}

std::string NameOf(std::string_view user) {
  return user.empty() ? "a user who is not known" : fmt::format("user '{}'", user);
}

// A claim has a namespace only where a service account makes it.
std::string NameOfSpace(std::string_view space) {
  return space.empty() ? "a claim of a user without a namespace"
                       : fmt::format("namespace '{}'", space);
}

bool SaysWhom(const kubernetes::FluxQueue* queue) {
  return queue->namespace_selector.has_value() || !queue->members.AreAll();
}

bool NamesSubmitters(const kubernetes::FluxQueue& queue) {
  return std::any_of(queue.subjects.begin(), queue.subjects.end(), [](const auto& subject) {
    return subject.Has(kubernetes::kSubmitVerb);
  });
}

bool Grants(const kubernetes::FluxQueue& queue,
            std::string_view verb,
            std::string_view user,
            const std::vector<std::string>& groups) {
  return std::any_of(queue.subjects.begin(), queue.subjects.end(), [&](const auto& subject) {
    return subject.Has(verb) && subject.Is(user, groups);
  });
}

}  // namespace

std::optional<std::string> ParentProblem(const kubernetes::FluxQueue& queue,
                                         const QueuesByName& queues) {
  if (queue.parent.empty()) return std::nullopt;
  const auto parent = queues.find(queue.parent);
  if (parent == queues.end()) return "there is no such FluxQueue: make it, or name another";
  if (PoolOfObject(parent->second) != PoolOfObject(queue)) {
    return fmt::format(
        "it is in pool '{}', and this one in pool '{}'; allowed: one of its own pool",
        PoolOfObject(parent->second),
        PoolOfObject(queue));
  }
  if (IsInCycle(queue, queues)) {
    return "it is this queue or below it, and a tree has no cycles; allowed: one that is not";
  }
  return std::nullopt;
}

Way WayUp(const kubernetes::FluxQueue& queue, const QueuesByName& queues) {
  Way way = {&queue};
  while (!way.back()->parent.empty() && !ParentProblem(*way.back(), queues)) {
    way.push_back(&queues.find(way.back()->parent)->second);
  }
  return way;
}

bool NamesSubmitters(const Way& way) {
  return std::any_of(way.begin(), way.end(), [](const auto* at) { return NamesSubmitters(*at); });
}

bool Grants(const Way& way,
            std::string_view verb,
            std::string_view user,
            const std::vector<std::string>& groups) {
  return std::any_of(
      way.begin(), way.end(), [&](const auto* at) { return Grants(*at, verb, user, groups); });
}

std::optional<std::string> TakesProblem(const Maker& maker, const Way& way) {
  const kubernetes::FluxQueue& top = *way.back();
  // It was to be asked whom it takes, and cannot be.
  if (!top.parent.empty() && std::none_of(way.begin(), way.end(), SaysWhom)) {
    return fmt::format(
        "FluxQueue '{}' takes the jobs of those whom its parent '{}' takes, and that one does not "
        "count ('kubectl describe fluxqueue {}' says why); name another queue, or have it mended",
        top.meta.name,
        top.parent,
        top.meta.name);
  }
  for (const kubernetes::FluxQueue* at : way) {
    if (!at->namespace_selector || at->namespace_selector->Selects(maker.labels)) continue;
    return fmt::format(
        "FluxQueue '{}' takes jobs of namespaces with the labels {} (spec.namespaceSelector), and "
        "{} is none; name another queue, or have the namespace labelled",
        at->meta.name,
        at->namespace_selector->Text(),
        NameOfSpace(maker.space));
  }
  for (const kubernetes::FluxQueue* at : way) {
    if (at->members.Include(maker.user, maker.space)) continue;
    return fmt::format(
        "FluxQueue '{}' takes jobs of its members (spec.members), and {} and {} are none; name "
        "another queue, or have one of them added",
        at->meta.name,
        NameOfSpace(maker.space),
        NameOf(maker.user));
  }
  return std::nullopt;
}

std::optional<std::string> SubmitProblem(std::string_view user,
                                         const std::vector<std::string>& groups,
                                         const Way& way) {
  for (const kubernetes::FluxQueue* at : way) {
    if (!NamesSubmitters(*at) || Grants(*at, kubernetes::kSubmitVerb, user, groups)) continue;
    return fmt::format(
        "FluxQueue '{}' says who may submit (spec.subjects), and {} is not among them; name "
        "another queue, or have the verb submit given",
        at->meta.name,
        NameOf(user));
  }
  return std::nullopt;
}

std::optional<std::string> PriorityProblem(int32_t priority,
                                           std::optional<int32_t> before,
                                           const Way& way) {
  if (before && priority <= *before) return std::nullopt;
  for (const kubernetes::FluxQueue* at : way) {
    if (priority <= at->max_priority.value_or(priority)) continue;
    return fmt::format("{} is more than FluxQueue '{}' allows; allowed: up to {}",
                       priority,
                       at->meta.name,
                       *at->max_priority);
  }
  return std::nullopt;
}

}  // namespace fluxqueue::access
