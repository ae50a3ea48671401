#include "tools/fluxqueue/text_file.h"

#include <fstream>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {

absl::Status WriteTextFile(const std::string& path, std::string_view text) {
  if (path == "-") {
    fmt::print("{}", text);
    return absl::OkStatus();
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return InvalidArgument("{}: cannot be written", path);
  return absl::OkStatus();
}

}  // namespace fluxqueue::cli
