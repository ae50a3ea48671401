#include "libs/graph/shortened.h"

#include <string>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {

absl::Status Shortened(const absl::Status& status) {
  std::string message = Message(status);
  if (message.size() <= kMaxMessageBytes) return status;
  size_t end = kMaxMessageBytes;
  while ((static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
  message.resize(end);
  return MakeStatus(status.code(), "{}…", message);
}

}  // namespace fluxqueue::graph
