#include "libs/testing/mini_kafka.h"

#include <filesystem>

namespace fluxqueue::testing {

void LoseTails(const std::string& broker, const std::string& topic) {
  constexpr uintmax_t kTorn = 8;  // the rest of a batch is worth nothing
  const std::filesystem::path data = std::filesystem::path(broker) / "data";
  // Else the broker trusts its logs.
  std::filesystem::remove(data / ".kafka_cleanshutdown");
  for (const auto& folder : std::filesystem::directory_iterator(data)) {
    const std::string name = folder.path().filename();
    if (name.substr(0, name.rfind('-')) != topic) continue;
    const auto segment = folder.path() / "00000000000000000000.log";
    const uintmax_t size = std::filesystem::file_size(segment);
    if (size > kTorn) std::filesystem::resize_file(segment, size - kTorn);
  }
}

}  // namespace fluxqueue::testing
