#include "libs/testing/shell.h"

#include <array>
#include <cstdio>

#include <sys/wait.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::testing {

std::string ShellQuote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string ShellCommand(const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + ShellQuote(word);
  return command;
}

std::string KubectlCommand(const std::string& kubeconfig,
                           const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {
      "bash",
      "-c",
      "cd \"$0\" && . lib/log.sh && . lib/cache.sh && exec \"$(kubernetes_home .)/kubectl\" \"$@\"",
      FLUXQUEUE_SOURCE_DIR "/tools",
      "--kubeconfig",
      kubeconfig};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return ShellCommand(words);
}

absl::StatusOr<ShellResult> RunAny(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return Unavailable("cannot run {}", command);
  ShellResult result;
  std::array<char, 4096> buffer{};
  for (size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.output.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return result;
}

absl::StatusOr<std::string> Run(const std::string& command) {
  ASSIGN_OR_RETURN(ShellResult result, RunAny(command));
  if (result.exit_code == 0) return std::move(result.output);
  return Unavailable("{} ended with {}: {}", command, result.exit_code, result.output);
}

}  // namespace fluxqueue::testing
