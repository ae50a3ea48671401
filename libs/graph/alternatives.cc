#include "libs/graph/alternatives.h"

#include <utility>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

using Resources = std::vector<ResourceRequest>;

absl::Status CheckNumber(size_t alternatives) {
  if (alternatives <= kMaxAlternatives) return absl::OkStatus();
  return InvalidArgument("resources: {} stands for more than {} requests; name fewer alternatives",
                         kXorSlotType,
                         kMaxAlternatives);
}

// Every one of `before`, with every one of `next` behind it.
absl::StatusOr<std::vector<Resources>> Combine(const std::vector<Resources>& before,
                                               const Resources& next) {
  RETURN_IF_ERROR(CheckNumber(before.size() * next.size()));
  std::vector<Resources> combined;
  for (const Resources& head : before) {
    for (const ResourceRequest& tail : next) {
      combined.push_back(head);
      combined.back().push_back(tail);
    }
  }
  return combined;
}

}  // namespace

absl::StatusOr<std::vector<Resources>> SplitAlternatives(const Resources& resources) {
  std::vector<Resources> results(1);
  Resources choices;  // one of these is made
  for (const ResourceRequest& resource : resources) {
    ASSIGN_OR_RETURN(const std::vector<Resources> below, SplitAlternatives(resource.with));
    Resources variants;
    for (const Resources& with : below) {
      variants.push_back(resource);
      variants.back().with = with;
    }
    if (resource.type != kXorSlotType) {
      ASSIGN_OR_RETURN(results, Combine(results, variants));
      continue;
    }
    for (ResourceRequest& variant : variants) {
      variant.type = std::string(kSlotType);
      choices.push_back(std::move(variant));
      RETURN_IF_ERROR(CheckNumber(choices.size()));
    }
  }
  if (choices.empty()) return results;
  return Combine(results, choices);
}

}  // namespace fluxqueue::graph
