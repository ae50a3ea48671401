#include "libs/kubernetes/group.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/names.h"

namespace fluxqueue::kubernetes {
namespace {

std::string DurationText(const std::optional<Millis>& duration) {
  return duration ? fmt::format("{} ms", duration->count()) : "";
}

std::string_view QueueOf(const GroupMember& member) {
  return member.keys.queue ? std::string_view(*member.keys.queue) : kDefaultQueue;
}

absl::Status CheckAlike(const GroupMember& a, const GroupMember& b) {
  const auto differ = [&](std::string_view what, std::string_view of_a, std::string_view of_b) {
    return InvalidArgument(
        "pods {} and {} of one group differ in {}: \"{}\" and \"{}\"; allowed is the same for all",
        a.name,
        b.name,
        what,
        of_a,
        of_b);
  };
  if (QueueOf(a) != QueueOf(b)) return differ(kQueueKey, QueueOf(a), QueueOf(b));
  if (a.keys.qos != b.keys.qos) return differ(kQosKey, a.keys.qos, b.keys.qos);
  if (a.keys.topology != b.keys.topology) {
    return differ(kTopologyKey,
                  FormatTopology(a.keys.topology.value_or(Topology())),
                  FormatTopology(b.keys.topology.value_or(Topology())));
  }
  if (a.duration != b.duration) {
    return differ(kDurationKey, DurationText(a.duration), DurationText(b.duration));
  }
  if (a.keys.depends_on != b.keys.depends_on) {
    return differ(kDependsOnKey, "its own", "its own");
  }
  if (a.demand.constraint != b.demand.constraint) {
    return differ("nodeSelector, required node affinity or tolerations",
                  a.demand.constraint,
                  b.demand.constraint);
  }
  if (a.demand.rules.rules != b.demand.rules.rules) {
    return differ("required pod affinity, anti-affinity or topology spread",
                  a.demand.rules.rules,
                  b.demand.rules.rules);
  }
  return absl::OkStatus();
}

// As many kinds of slots as a jobspec may have (kMaxSlotGroups of libs/graph).
constexpr size_t kMostSets = 16;

}  // namespace

std::string FormatGroup(const GroupName& group) {
  const char* how = group.at_first ? "^" : group.or_each ? "+" : "";
  return fmt::format("{}/{}{}", group.name, group.size, how);
}

std::optional<GroupName> ParseGroup(std::string_view record) {
  const size_t slash = record.find('/');
  if (slash == record.npos) return std::nullopt;
  std::string_view text = record.substr(slash + 1);
  const bool at_first = text.ends_with('^');
  const bool or_each = at_first || text.ends_with('+');
  if (or_each) text.remove_suffix(1);
  uint32_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  std::string name(record.substr(0, slash));
  if (size < 2 || size > kMaxGroupPods || !IsDnsLabel(name)) return std::nullopt;
  return GroupName{std::move(name), size, or_each, at_first};
}

void SortBySlot(std::vector<const GroupMember*>* members) {
  const auto place = [](const GroupMember* member) {
    return std::tuple(member->index, member->name.size(), std::string_view(member->name));
  };
  std::sort(members->begin(), members->end(), [&](const GroupMember* a, const GroupMember* b) {
    return place(a) < place(b);
  });
  // Sets stand in the order of their first members.
  std::vector<const Amounts*> sets;
  const auto set_of = [&sets](const GroupMember* member) {
    const auto found = std::find_if(sets.begin(), sets.end(), [member](const Amounts* set) {
      return *set == member->demand.requests;
    });
    return found - sets.begin();
  };
  for (const GroupMember* member : *members) {
    const bool known = set_of(member) < static_cast<ptrdiff_t>(sets.size());
    if (!known && sets.size() <= kMostSets) {
      sets.push_back(&member->demand.requests);
    }
  }
  if (sets.size() == 1) return;
  std::stable_sort(
      members->begin(), members->end(), [&](const GroupMember* a, const GroupMember* b) {
        return set_of(a) < set_of(b);
      });
}

absl::StatusOr<PodDemand> DemandOf(const std::vector<const GroupMember*>& members) {
  PodDemand demand;
  demand.mode = members.front()->demand.mode;
  demand.constraint = members.front()->demand.constraint;
  demand.preferences = members.front()->demand.preferences;
  demand.rules = members.front()->demand.rules;
  for (const GroupMember* member : members) {
    RETURN_IF_ERROR(CheckAlike(*members.front(), *member));
    std::vector<PodSet>& sets = demand.sets;
    if (sets.empty() || sets.back().requests != member->demand.requests) {
      sets.push_back({0, member->demand.requests});
    }
    ++sets.back().slots;
    if (sets.size() > kMostSets) {
      return InvalidArgument(
          "the pods of the group ask for more than {} different amounts of resources; allowed are "
          "at most that many",
          kMostSets);
    }
  }
  return demand;
}

// FNV-1a, twice.
std::string GroupJobId(const std::vector<const GroupMember*>& members) {
  std::vector<std::string_view> uids;
  uids.reserve(members.size());
  for (const GroupMember* member : members) uids.push_back(member->uid);
  std::sort(uids.begin(), uids.end());
  uint64_t high = 0xcbf29ce484222325;
  uint64_t low = 0x9ae16a3b2f90404f;
  for (const std::string_view uid : uids) {
    for (const char c : uid) {
      high = (high ^ static_cast<unsigned char>(c)) * 0x100000001b3;
      low = (low ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    low = (low ^ (low >> 29)) * 0xbf58476d1ce4e5b9;
  }
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                     high >> 32,
                     (high >> 16) & 0xffff,
                     high & 0xffff,
                     low >> 48,
                     low & 0xffffffffffff);
}

}  // namespace fluxqueue::kubernetes
