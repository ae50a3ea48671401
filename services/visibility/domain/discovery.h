// What the API server and its clients ask to know what there is: without the queue, as a namespace
// ends only when every API group can be asked. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fluxqueue::visibility {

// The document at the path, as JSON; nothing: it is none of discovery.
std::optional<std::string> DiscoveryDocument(std::string_view path);

}  // namespace fluxqueue::visibility
