#include "tests/simulation/sim_cluster.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::simulation {
namespace {

using kubernetes::Resource;

absl::Status Conflict(const std::string& why) {
  return MakeStatus(absl::StatusCode::kAborted, "simulated: {}", why);
}

absl::Status NotFound(const std::string& name) {
  return MakeStatus(absl::StatusCode::kNotFound, "simulated: there is no {}", name);
}

// A strategic patch gives each type of condition its place.
void MergeConditions(const json& patch, json* object) {
  json& conditions = (*object)["status"]["conditions"];
  if (conditions.is_null()) conditions = json::array();
  for (const json& condition : patch) {
    std::erase_if(conditions.get_ref<json::array_t&>(),
                  [&](const json& known) { return known["type"] == condition["type"]; });
    conditions.push_back(condition);
  }
}

bool HasConditions(const json& patch) {
  return patch.contains("status") && patch["status"].contains("conditions");
}

}  // namespace

std::string TextAt(const json& object, const char* pointer) {
  const json::json_pointer at(pointer);
  return object.contains(at) && object[at].is_string() ? object[at].get<std::string>() : "";
}

SimCluster::Key SimCluster::KeyOf(const Resource& resource,
                                  std::string_view space,
                                  std::string_view name) {
  return {std::string(resource.plural), std::string(space), std::string(name)};
}

SimCluster::Object::Object(json of)
    : body(std::move(of)),
      text(body.dump()),
      space(TextAt(body, "/metadata/namespace")),
      name(TextAt(body, "/metadata/name")),
      uid(TextAt(body, "/metadata/uid")),
      owner(TextAt(body, "/metadata/ownerReferences/0/uid")),
      node(TextAt(body, "/spec/nodeName")),
      phase(TextAt(body, "/status/phase")),
      going(body["metadata"].contains("deletionTimestamp")) {}

SimCluster::Stored SimCluster::Find(const Resource& resource,
                                    std::string_view space,
                                    std::string_view name) const {
  const auto found = objects_.find(KeyOf(resource, space, name));
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<SimCluster::Stored> SimCluster::All(const Resource& resource) const {
  std::vector<Stored> all;
  for (auto it = objects_.lower_bound(KeyOf(resource, "", "")); it != objects_.end(); ++it) {
    if (std::get<0>(it->first) != resource.plural) break;
    all.push_back(it->second);
  }
  return all;
}

void SimCluster::Put(const Resource& resource, json body) {
  const Key key =
      KeyOf(resource, TextAt(body, "/metadata/namespace"), TextAt(body, "/metadata/name"));
  if (!body["metadata"].contains("uid")) {
    body["metadata"]["uid"] = fmt::format("{}-{}", std::get<2>(key), ++uids_);
  }
  Store(key, std::move(body));
}

void SimCluster::Store(const Key& key, json body) {
  const std::string& plural = std::get<0>(key);
  Stored& stored = objects_[key];
  const Stored before = stored;
  body["metadata"]["resourceVersion"] = std::to_string(++version_);
  const Stored after = stored = std::make_shared<const Object>(std::move(body));
  changes_.push_back({version_, before == nullptr ? "ADDED" : "MODIFIED", plural, after});
  if (written_) written_(plural, before.get(), after.get());
}

void SimCluster::Remove(const Resource& resource, std::string_view space, std::string_view name) {
  const auto found = objects_.find(KeyOf(resource, space, name));
  if (found == objects_.end()) return;
  const std::string plural(resource.plural);
  const Stored before = found->second;
  objects_.erase(found);
  json last = before->body;
  last["metadata"]["resourceVersion"] = std::to_string(++version_);
  changes_.push_back(
      {version_, "DELETED", plural, std::make_shared<const Object>(std::move(last))});
  if (written_) written_(plural, before.get(), nullptr);
}

void SimCluster::CutWatches(bool expire) {
  ++cuts_;
  if (expire) expired_ = ++version_;
}

void SimCluster::GoBack(size_t changes) {
  constexpr uint64_t kBump = 1'000;
  changes_.resize(changes_.size() - std::min(changes, changes_.size()));
  objects_.clear();
  for (const Change& change : changes_) {
    const Key key{change.plural, change.object->space, change.object->name};
    if (std::string_view(change.type) == "DELETED") {
      objects_.erase(key);
    } else {
      objects_[key] = change.object;
    }
  }
  version_ += kBump;
  ++backups_;
  CutWatches(/*expire=*/true);
}

absl::Status SimCluster::Check(const Object& object,
                               const std::string& uid,
                               const std::string& version) const {
  if (!faults_.no_versions && !version.empty() &&
      version != TextAt(object.body, "/metadata/resourceVersion")) {
    return Conflict("another resourceVersion");
  }
  if (uid.empty() || uid == object.uid) return absl::OkStatus();
  if (!faults_.no_uids) return Conflict("another uid");
  if (strayed_) strayed_(uid, object);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SimCluster::Get(const Resource& resource,
                                            const std::string& space,
                                            const std::string& name) {
  const Stored found = Find(resource, space, name);
  if (found == nullptr) return NotFound(name);
  if (resource.plural == kubernetes::kNodes.plural) nodes_seen_[found->uid] = scheduler_.now();
  return found->text;
}

std::optional<TimePoint> SimCluster::NodeSeen(const std::string& uid) const {
  const auto seen = nodes_seen_.find(uid);
  if (seen == nodes_seen_.end()) return std::nullopt;
  return seen->second;
}

absl::StatusOr<std::string> SimCluster::Patch(const Resource& resource,
                                              const std::string& space,
                                              const std::string& name,
                                              const std::string& body) {
  const Stored before = Find(resource, space, name);
  if (before == nullptr) return NotFound(name);
  json patch = json::parse(body);
  RETURN_IF_ERROR(
      Check(*before, TextAt(patch, "/metadata/uid"), TextAt(patch, "/metadata/resourceVersion")));
  patch["metadata"].erase("uid");
  patch["metadata"].erase("resourceVersion");
  json after = before->body;
  if (HasConditions(patch)) {
    MergeConditions(patch["status"]["conditions"], &after);
    patch["status"].erase("conditions");
  }
  after.merge_patch(patch);
  if (after != before->body) Store(KeyOf(resource, space, name), std::move(after));
  return Find(resource, space, name)->text;
}

// What runs goes when its kubelet has ended it.
absl::Status SimCluster::Delete(const Resource& resource,
                                const std::string& space,
                                const std::string& name,
                                const kubernetes::Preconditions& preconditions) {
  const Stored found = Find(resource, space, name);
  if (found == nullptr) return NotFound(name);
  RETURN_IF_ERROR(Check(*found, preconditions.uid, preconditions.resource_version));
  if (found->node.empty() || found->Finished()) {
    Remove(resource, space, name);
  } else if (!found->going) {
    json going = found->body;
    going["metadata"]["deletionTimestamp"] = FormatSeconds(WallTime(scheduler_));
    Put(resource, std::move(going));
  }
  return absl::OkStatus();
}

absl::Status SimCluster::Bind(const kubernetes::Binding& binding, TimePoint sent) {
  const Stored found = Find(kubernetes::kPods, binding.space, binding.pod);
  if (found == nullptr) return NotFound(binding.pod);
  const kubernetes::Preconditions& preconditions = binding.preconditions;
  RETURN_IF_ERROR(Check(*found, preconditions.uid, preconditions.resource_version));
  if (found->going) return Conflict("the pod is going");
  if (!found->node.empty()) return Conflict("the pod is bound");
  json bound = found->body;
  bound["spec"]["nodeName"] = binding.node;
  for (const auto& [key, value] : binding.annotations) {
    bound["metadata"]["annotations"][key] = value;
  }
  binding_sent_ = sent;
  Put(kubernetes::kPods, std::move(bound));
  return absl::OkStatus();
}

}  // namespace fluxqueue::simulation
