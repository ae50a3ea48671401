#include "libs/kubernetes/kinds.h"

#include <algorithm>

#include <yaml-cpp/yaml.h>

#include "libs/kubernetes/ownership.h"

#include "fmt/format.h"
#include "kinds_table.h"

namespace fluxqueue::kubernetes {
namespace {

std::vector<Kind> Read() {
  std::vector<Kind> kinds;
  for (const YAML::Node& row : YAML::Load(kKindsTable)) {
    if (row["is"].as<std::string>() != "root") continue;
    const auto field = [&row](const char* key) { return row[key].as<std::string>(); };
    kinds.push_back({.group = field("group"),
                     .resource = field("resource"),
                     .kind = field("kind"),
                     .template_ = field("template"),
                     .makes = field("makes"),
                     .controller = field("controller")});
  }
  return kinds;
}

}  // namespace

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kKinds = Read();
  return kKinds;
}

const Kind* FindKind(std::string_view group, std::string_view resource) {
  const auto found = std::find_if(Kinds().begin(), Kinds().end(), [&](const Kind& kind) {
    return kind.group == group && kind.resource == resource;
  });
  return found == Kinds().end() ? nullptr : &*found;
}

bool IsFromTemplate(const ObjectMeta& meta, std::string_view user) {
  const OwnerReference* owner = meta.Controller();
  if (owner == nullptr) return false;
  return std::any_of(Kinds().begin(), Kinds().end(), [&](const Kind& kind) {
    const std::string version = kind.group.empty() ? "v1" : fmt::format("{}/v1", kind.group);
    return owner->kind == kind.kind && owner->api_version == version && !kind.controller.empty() &&
           IsController(user, kind.controller);
  });
}

}  // namespace fluxqueue::kubernetes
