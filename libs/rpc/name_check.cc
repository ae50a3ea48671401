#include "libs/rpc/name_check.h"

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::rpc {

absl::Status CheckName(std::string_view field, std::string_view name, size_t most) {
  if (IsPlain(name, most)) return absl::OkStatus();
  return InField(InvalidArgument("{}: has {} bytes, or a control character; at most {} are allowed",
                                 field,
                                 name.size(),
                                 most),
                 field);
}

}  // namespace fluxqueue::rpc
