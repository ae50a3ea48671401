#include "libs/metrics/process_metrics.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace fluxqueue::metrics {
namespace {

// Positions in StatFields, from proc(5) less the two fields in front of `state`.
constexpr size_t kUserTicks = 11;
constexpr size_t kSystemTicks = 12;
constexpr size_t kThreads = 17;
constexpr size_t kStartTicks = 19;
constexpr size_t kVirtualBytes = 20;
constexpr size_t kResidentPages = 21;

// The fields of /proc/self/stat behind the program's name, which may hold spaces; `state` is [0].
std::vector<std::string> StatFields() {
  std::ifstream stream("/proc/self/stat");
  std::string line;
  std::getline(stream, line);
  const size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream rest(line.substr(end_of_name + 1));
  return {std::istream_iterator<std::string>(rest), std::istream_iterator<std::string>()};
}

double BootTimeSeconds() {
  std::ifstream stream("/proc/stat");
  std::string line;
  while (std::getline(stream, line)) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return 0;
}

int64_t OpenFds() {
  std::error_code error;
  const std::filesystem::directory_iterator folder("/proc/self/fd", error);
  if (error) return 0;
  // Less the one that looks.
  return std::distance(begin(folder), end(folder)) - 1;
}

}  // namespace

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  const std::vector<std::string> fields = StatFields();
  if (fields.size() > kResidentPages) {
    const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    usage.cpu_seconds = (std::stod(fields[kUserTicks]) + std::stod(fields[kSystemTicks])) / ticks;
    usage.threads = std::stoll(fields[kThreads]);
    usage.start_time_seconds = BootTimeSeconds() + std::stod(fields[kStartTicks]) / ticks;
    usage.virtual_bytes = std::stoll(fields[kVirtualBytes]);
    usage.resident_bytes = std::stoll(fields[kResidentPages]) * ::sysconf(_SC_PAGESIZE);
  }
  usage.open_fds = OpenFds();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    usage.max_fds = static_cast<int64_t>(limit.rlim_cur);
  }
  return usage;
}

void ExportProcessMetrics(Registry& registry) {
  const auto gauge = [&registry](const char* name, const char* help, auto member) {
    registry.GaugesFrom(name, help, {}, [member] {
      return std::vector<Sample>{{{}, static_cast<double>(ReadProcessUsage().*member)}};
    });
  };
  gauge(
      "process_resident_memory_bytes", "Resident memory in bytes.", &ProcessUsage::resident_bytes);
  gauge("process_virtual_memory_bytes", "Virtual memory in bytes.", &ProcessUsage::virtual_bytes);
  gauge("process_start_time_seconds",
        "Start of the process, seconds since the Unix epoch.",
        &ProcessUsage::start_time_seconds);
  gauge("process_open_fds", "Open file descriptors.", &ProcessUsage::open_fds);
  gauge("process_max_fds", "File descriptors that may be open.", &ProcessUsage::max_fds);
  gauge("process_threads", "Threads.", &ProcessUsage::threads);
  registry.CountersFrom(
      "process_cpu_seconds_total", "User and system CPU time in seconds.", {}, [] {
        return std::vector<Sample>{{{}, ReadProcessUsage().cpu_seconds}};
      });
}

}  // namespace fluxqueue::metrics
