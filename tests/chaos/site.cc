#include "tests/chaos/site.h"

#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include "libs/base/status_macros.h"
#include "libs/testing/shell.h"

namespace fluxqueue::chaos {
namespace {

constexpr std::array kDisks = {"kafka", "postgres"};
// No more than that, and no memory until it is used.
constexpr const char* kRoom = "size=4g";
// A disk that is full still has the rest of a page.
constexpr int kLeftKib = 8;

constexpr int kADay = 86400;

std::string Tool(const std::string& tool) {
  return fmt::format("{}/tools/{}", FLUXQUEUE_SOURCE_DIR, tool);
}

absl::Status RunQuietly(const std::string& command) {
  return testing::Run(command + " 2>&1").status();
}

// Where it may not, it does not.
void MountDisks(const std::string& folder) {
  if (unshare(CLONE_NEWNS) != 0) return;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
  for (const char* disk : kDisks) {
    const std::string place = fmt::format("{}/{}", folder, disk);
    std::filesystem::create_directory(place);
    if (mount("chaos", place.c_str(), "tmpfs", 0, kRoom) != 0) return;
  }
}

}  // namespace

absl::Status Site::Prepare(const std::string& folder) {
  MountDisks(folder);
  std::vector<std::string> words = WordsForClock(-kADay);
  words.insert(words.end(),
               {"bash",
                "-euc",
                "cd \"$0\" && . lib/log.sh && . cluster/pki.sh && SERVICE_IP=10.96.0.1 && mkdir -p "
                "\"$1/logs\" && pki_make \"$1\"",
                Tool(""),
                folder + "/cluster"});
  return RunQuietly(testing::ShellCommand(words));
}

Site::~Site() {
  // Where there is none, this does nothing.
  for (const char* disk : kDisks) umount2(Path(disk).c_str(), MNT_DETACH);
}

absl::StatusOr<int> Site::PortOf(const std::string& file) const {
  int port = 0;
  std::ifstream(Path(file)) >> port;
  if (port == 0) return Unavailable("{} has no port", Path(file));
  return port;
}

absl::Status Site::Start(int replicas) {
  ASSIGN_OR_RETURN(postgres_port_, PortOf("postgres/port"));
  ASSIGN_OR_RETURN(const int api_port, PortOf("cluster/ports"));
  postgres_front_ = std::make_unique<testing::TcpProxy>(static_cast<uint16_t>(postgres_port_));
  api_front_ = std::make_unique<testing::TcpProxy>(static_cast<uint16_t>(api_port));
  std::ofstream(Path("fronts")) << fmt::format(
      "{} {}\n{} {}\n", postgres_port_, postgres_front_->port(), api_port, api_front_->port());
  return system_->StartReplicas(replicas);
}

absl::Status Site::FailOver() {
  RETURN_IF_ERROR(RunQuietly(fmt::format("{} {} --follow {} --unsafe-no-fsync",
                                         Tool("postgres/start"),
                                         testing::ShellQuote(Path("standby")),
                                         postgres_port_)));
  ASSIGN_OR_RETURN(const int port, PortOf("standby/port"));
  RETURN_IF_ERROR(system_->End("postgres/postgres", SIGKILL));
  RETURN_IF_ERROR(RunQuietly(fmt::format(
      "psql -qXAtc 'SELECT pg_promote()' postgresql://postgres@127.0.0.1:{}/fluxqueue", port)));
  std::filesystem::copy_file(
      Path("standby/dsn"), Path("postgres/dsn"), std::filesystem::copy_options::overwrite_existing);
  postgres_front_->LeadTo(static_cast<uint16_t>(port));
  postgres_front_->Cut();
  system_->Reconnect();
  return absl::OkStatus();
}

absl::Status Site::FailBack() {
  const std::string standby = testing::ShellQuote(Path("standby"));
  const std::string data = testing::ShellQuote(Path("postgres/data"));
  RETURN_IF_ERROR(RunQuietly(fmt::format("{} {}", Tool("postgres/stop"), standby)));
  RETURN_IF_ERROR(
      RunQuietly(fmt::format("rm -rf {0} && mv {1}/data {0} && rm -rf {1}", data, standby)));
  RETURN_IF_ERROR(system_->StartPart("postgres"));
  postgres_front_->LeadTo(static_cast<uint16_t>(postgres_port_));
  postgres_front_->Cut();
  system_->Reconnect();
  return absl::OkStatus();
}

bool Site::has_disks() const {
  return RunQuietly("mountpoint -q " + testing::ShellQuote(Path("postgres"))).ok();
}

absl::Status Site::FillDisk(const std::string& part) {
  const std::string place = testing::ShellQuote(Path(part));
  return RunQuietly(fmt::format(
      "used=$(df -k --output=used {0} | tail -n 1) && mount -o remount,size=$((used + {1}))k {0}",
      place,
      kLeftKib));
}

absl::Status Site::EmptyDisk(const std::string& part) {
  return RunQuietly(fmt::format("mount -o remount,{} {}", kRoom, testing::ShellQuote(Path(part))));
}

std::vector<std::string> Site::WordsForClock(int shift) {
  return {"env",
          fmt::format("LD_PRELOAD={}/tests/libchaos_clock.so", FLUXQUEUE_BINARY_DIR),
          fmt::format("FLUXQUEUE_CLOCK_SHIFT={}", shift)};
}

absl::Status Site::StartKafka(int shift) {
  std::vector<std::string> words = WordsForClock(shift);
  words.insert(words.end(), {Tool("kafka/start"), Path("kafka")});
  return RunQuietly(testing::ShellCommand(words));
}

}  // namespace fluxqueue::chaos
