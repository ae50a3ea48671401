#include "libs/graph/alternatives.h"

#include <algorithm>
#include <utility>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

using Resources = std::vector<ResourceRequest>;

size_t CountResources(const Resources& resources) {
  size_t number = resources.size();
  for (const ResourceRequest& resource : resources) number += CountResources(resource.with);
  return number;
}

// How many requests they stand for; one more than is allowed stands for all greater numbers.
size_t CountAlternatives(const Resources& resources) {
  size_t combinations = 1;
  size_t choices = 0;
  for (const ResourceRequest& resource : resources) {
    const size_t below = CountAlternatives(resource.with);
    if (resource.type == kXorSlotType) {
      choices = std::min(choices + below, kMaxAlternatives + 1);
    } else {
      combinations = std::min(combinations * below, kMaxAlternatives + 1);
    }
  }
  return std::min(combinations * std::max<size_t>(choices, 1), kMaxAlternatives + 1);
}

// Every one of `before`, with every one of `next` behind it.
std::vector<Resources> Combine(std::vector<Resources> before, const Resources& next) {
  // The usual case; copies would make the time grow with the square of the list.
  if (next.size() == 1) {
    for (Resources& head : before) head.push_back(next.front());
    return before;
  }
  std::vector<Resources> combined;
  for (const Resources& head : before) {
    for (const ResourceRequest& tail : next) {
      combined.push_back(head);
      combined.back().push_back(tail);
    }
  }
  return combined;
}

std::vector<Resources> Split(const Resources& resources) {
  std::vector<Resources> results(1);
  Resources choices;  // one of these is made
  for (const ResourceRequest& resource : resources) {
    Resources variants;
    for (Resources& with : Split(resource.with)) {
      variants.push_back(resource);
      variants.back().with = std::move(with);
    }
    if (resource.type != kXorSlotType) {
      results = Combine(std::move(results), variants);
      continue;
    }
    for (ResourceRequest& variant : variants) {
      variant.type = std::string(kSlotType);
      choices.push_back(std::move(variant));
    }
  }
  if (choices.empty()) return results;
  return Combine(std::move(results), choices);
}

}  // namespace

absl::StatusOr<std::vector<Resources>> SplitAlternatives(const Resources& resources) {
  const size_t alternatives = CountAlternatives(resources);
  if (alternatives > kMaxAlternatives) {
    return InvalidArgument(
        "resources: {} stands for more than {} requests; name fewer alternatives",
        kXorSlotType,
        kMaxAlternatives);
  }
  if (alternatives * CountResources(resources) > kMaxAlternativeResources) {
    return InvalidArgument(
        "resources: the {} requests that {} stands for have more than {} resources",
        alternatives,
        kXorSlotType,
        kMaxAlternativeResources);
  }
  return Split(resources);
}

}  // namespace fluxqueue::graph
