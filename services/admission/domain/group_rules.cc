#include "services/admission/domain/group_rules.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "libs/kubernetes/names.h"

namespace fluxqueue::admission {
namespace {

// What is no name of an object says nothing of places.
Grouping WithPlaces(const kubernetes::GroupObjects& objects, const std::string& name) {
  if (!kubernetes::IsDnsSubdomain(name)) return {};
  return {
      .group = {}, .places = Absent{Absent::Kind::kPlaces, name, nullptr, &objects}, .answer = {}};
}

}  // namespace

Grouping GroupingOf(const Review& review,
                    const kubernetes::PodKeys& pods,
                    bool of_template,
                    const kubernetes::GroupTable& table) {
  const auto asked = table.Asked(pods);
  if (!asked.ok()) return {.group = {}, .answer = Refuse(asked.status())};
  if (!asked->has_value() || of_template) return {};
  kubernetes::GroupName group = (*asked)->group;
  if (const kubernetes::GroupObjects* objects = (*asked)->objects) {
    const std::string& name = (*asked)->object;
    if (objects->has_places) return WithPlaces(*objects, name);
    if (!kubernetes::IsDnsSubdomain(name)) {
      return {
          .group = {},
          .answer = Refuse(fmt::format(
              "{} that the pods name: it is not the name of an object: allowed are up to 253 of "
              "a-z, 0-9, '-' and '.', beginning and ending with a letter or digit; not '{}'",
              objects->plural,
              name))};
    }
    Absent absent{Absent::Kind::kGroup, name, nullptr, objects};
    if (group.at_first && !review.group_size.has_value()) {
      return {.group = {}, .look = std::move(absent), .answer = {}};
    }
    if (group.at_first && !review.group_size->ok()) return {};
    if (!review.group_size.has_value()) {
      Verdict look = Refuse(fmt::format(
          "{} '{}' says of how many pods their group is, and could not be looked up: try again",
          objects->plural,
          name));
      look.absent = std::move(absent);
      return {.group = {}, .answer = std::move(look)};
    }
    const absl::StatusOr<uint32_t>& size = *review.group_size;
    if (!size.ok()) return {.group = {}, .answer = Refuse(size.status())};
    group.size = *size;
  }
  if (group.size < 2) return {};
  return {.group = std::move(group), .answer = {}};
}

std::optional<Verdict> CheckHasNoSize(const kubernetes::UserKeys& keys) {
  for (const auto& [key, set] : {std::pair(kubernetes::kMinSlotsKey, keys.min_slots.has_value()),
                                 std::pair(kubernetes::kMaxSlotsKey, keys.max_slots.has_value()),
                                 std::pair(kubernetes::kArrayKey, keys.array.has_value())}) {
    if (!set) continue;
    return Refuse(
        fmt::format("{}: its pods are of a group, which starts as a whole; leave it out, or the "
                    "keys of the group in spec.template.metadata",
                    key));
  }
  return std::nullopt;
}

void WarnOfDeadline(const kubernetes::Job& job, Verdict* verdict) {
  if (job.active_deadline_s <= 0) return;
  verdict->warnings.push_back(
      fmt::format("spec.activeDeadlineSeconds runs while its pods wait for the others of their "
                  "group; {} in spec.template.metadata.annotations counts from their start",
                  kubernetes::kDurationKey));
}

std::optional<Verdict> CheckMakesAllAtOnce(const nlohmann::json& root,
                                           const Review& inner,
                                           const kubernetes::GroupTable& table) {
  const auto policy = root.value(nlohmann::json::json_pointer("/spec/podManagementPolicy"), "");
  const auto meta = kubernetes::ParseMeta(inner.object);
  if (policy != "OrderedReady" || !meta.ok()) return std::nullopt;
  const auto group = table.Asked({meta->labels, meta->annotations});  // hint: as above
  if (!group.ok() || !group->has_value() || (*group)->objects != nullptr) return std::nullopt;
  return Refuse(fmt::format(
      "spec.podManagementPolicy: OrderedReady makes a pod once the one before is ready, "
      "and the pods of group {} start together; allowed with a group is Parallel",
      (*group)->group.name));
}

}  // namespace fluxqueue::admission
