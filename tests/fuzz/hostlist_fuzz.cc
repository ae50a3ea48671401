#include <set>
#include <string>
#include <vector>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/hostlist.h"
#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {

void FuzzHostlist(std::string_view text) {
  constexpr size_t kLimit = 1'000;
  std::vector<std::string> hosts;
  const absl::Status status = graph::ExpandHostlist(text, kLimit, &hosts);
  CHECK(hosts.size() <= kLimit);
  if (!status.ok()) {
    CHECK(absl::IsInvalidArgument(status), "{}", Message(status));
    return;
  }
  CHECK(!hosts.empty());
  const std::string written = graph::FormatHostlist(hosts);
  std::vector<std::string> again;
  const absl::Status read = graph::ExpandHostlist(written, kLimit, &again);
  CHECK(read.ok(), "{}: {}", Message(read), written);
  const std::set<std::string> names(hosts.begin(), hosts.end());
  CHECK(std::set<std::string>(again.begin(), again.end()) == names, "{}", written);
  CHECK(again.size() == names.size(), "{} names a host twice", written);
  CHECK(graph::FormatHostlist(again) == written, "{}", written);
}

}  // namespace fluxqueue::fuzz
