#include "tools/fluxqueue/kubectl.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

constexpr int kNotFound = 127;

// A file in memory: whatever is written, neither side waits for the other.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("kubectl", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  bool Fill(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<size_t>(written));
    }
    return lseek(descriptor_, 0, SEEK_SET) == 0;
  }

  std::string Read() const {
    std::string text;
    std::array<char, 65536> buffer{};
    lseek(descriptor_, 0, SEEK_SET);
    for (ssize_t n = 0; (n = read(descriptor_, buffer.data(), buffer.size())) != 0;) {
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) break;
      text.append(buffer.data(), static_cast<size_t>(n));
    }
    return text;
  }

 private:
  const int descriptor_;
};

[[noreturn]] void BecomeKubectl(const std::vector<std::string>& arguments,
                                const MemoryFile& input,
                                const MemoryFile& output,
                                const MemoryFile& error) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  dup2(input.descriptor(), STDIN_FILENO);
  dup2(output.descriptor(), STDOUT_FILENO);
  dup2(error.descriptor(), STDERR_FILENO);
  std::vector<char*> pointers = {const_cast<char*>("kubectl")};
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  execvp("kubectl", pointers.data());
  _exit(kNotFound);
}

}  // namespace

absl::StatusOr<KubectlAnswer> RunKubectl(const std::vector<std::string>& arguments,
                                         const std::string& input) {
  const MemoryFile in;
  const MemoryFile out;
  const MemoryFile error;
  if (!in.Fill(input)) return Unavailable("a file in memory: {}", strerrordesc_np(errno));
  const pid_t child = fork();
  if (child < 0) return Unavailable("fork: {}", strerrordesc_np(errno));
  if (child == 0) BecomeKubectl(arguments, in, out, error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return Unavailable("kubectl was ended by signal {}", WTERMSIG(status));
  KubectlAnswer answer{.status = WEXITSTATUS(status), .output = out.Read(), .error = error.Read()};
  if (answer.status == kNotFound && answer.error.empty()) {
    return MakeStatus(absl::StatusCode::kNotFound, "kubectl is not on the PATH");
  }
  return answer;
}

absl::Status ErrorOfKubectl(const std::string& error) {
  static const std::map<std::string_view, absl::StatusCode> kCodes = {
      {"BadRequest", absl::StatusCode::kInvalidArgument},
      {"Unauthorized", absl::StatusCode::kUnauthenticated},
      {"Forbidden", absl::StatusCode::kPermissionDenied},
      {"NotFound", absl::StatusCode::kNotFound},
      {"Conflict", absl::StatusCode::kFailedPrecondition}};
  constexpr std::string_view kBegin = "Error from server (";
  std::string_view text = error;
  while (text.ends_with('\n')) text.remove_suffix(1);
  const size_t at = text.find(kBegin);
  const size_t end = at == text.npos ? text.npos : text.find("): ", at);
  if (end == text.npos) return Unavailable("{}", text.empty() ? "kubectl failed" : text);
  const std::string_view reason = text.substr(at + kBegin.size(), end - at - kBegin.size());
  const auto code = kCodes.find(reason);
  return MakeStatus(code == kCodes.end() ? absl::StatusCode::kUnavailable : code->second,
                    "{}",
                    text.substr(end + 3));
}

}  // namespace fluxqueue::cli
