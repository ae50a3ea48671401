#include "tests/kubernetes/kube_scheduler.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/testing/shell.h"

namespace fluxqueue::kubernetes_test {
namespace {

using nlohmann::json;

// What it has written. Its standard error goes to the test's.
absl::StatusOr<std::string> KubeFilters(const char* command, const std::string& input) {
  return testing::Run(testing::ShellCommand(
      {"bash",
       "-c",
       R"(cd "$0" && . lib/log.sh && . lib/cache.sh && exec "$(filters_home .)/kube-filters" "$1" <"$2")",
       FLUXQUEUE_SOURCE_DIR "/tools",
       command,
       input}));
}

}  // namespace

absl::StatusOr<std::vector<json>> AskKubeScheduler(const std::vector<json>& worlds) {
  std::string file = (std::filesystem::temp_directory_path() / "kube-filters-XXXXXX").string();
  const int descriptor = mkstemp(file.data());
  if (descriptor < 0) return Unavailable("cannot make the file {}", file);
  close(descriptor);
  std::ofstream out(file);
  for (const json& world : worlds) out << world.dump() << '\n';
  out.close();
  const absl::StatusOr<std::string> text = KubeFilters("filter", file);
  std::filesystem::remove(file);
  RETURN_IF_ERROR(text.status());
  std::vector<json> answers;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) answers.push_back(json::parse(line));
  if (answers.size() == worlds.size()) return answers;
  return Internal("{} worlds have {} answers", worlds.size(), answers.size());
}

absl::StatusOr<json> ApiFields() {
  ASSIGN_OR_RETURN(const std::string text, KubeFilters("fields", "/dev/null"));
  return json::parse(text);
}

}  // namespace fluxqueue::kubernetes_test
