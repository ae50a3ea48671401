#include "libs/kubernetes/resource.h"

#include "libs/kubernetes/names.h"

namespace fluxqueue::kubernetes {

std::string Resource::Path(std::string_view space,
                           std::string_view name,
                           std::string_view subresource) const {
  std::string path = group.empty() ? "/api/" : "/apis/";
  if (!group.empty()) path.append(group).append("/");
  path.append(version);
  if (namespaced && !space.empty()) path.append("/namespaces/").append(PathSegment(space));
  path.append("/").append(plural);
  if (!name.empty()) path.append("/").append(PathSegment(name));
  if (!subresource.empty()) path.append("/").append(PathSegment(subresource));
  return path;
}

}  // namespace fluxqueue::kubernetes
