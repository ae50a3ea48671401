#include "libs/testing/mini_system.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::testing {
namespace {

constexpr std::chrono::milliseconds kLook{50};
// For a database that a test has stopped and started.
constexpr std::chrono::seconds kPatience{10};
// A service that is asked to end gives itself 20 s.
constexpr std::chrono::seconds kMostForAnEnd{30};

std::string ToolPath(const std::string& name) {
  return fmt::format("{}/tools/{}", FLUXQUEUE_SOURCE_DIR, name);
}

absl::StatusOr<std::string> MakeFolder(const char* what) {
  std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("fluxqueue-{}-XXXXXX", what)).string();
  if (mkdtemp(folder.data()) == nullptr) return Unavailable("cannot make the folder {}", folder);
  return folder;
}

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

MiniSystem::MiniSystem(std::string folder) : folder_(std::move(folder)) {}

absl::StatusOr<std::unique_ptr<MiniSystem>> MiniSystem::Start(const MiniSystemOptions& options) {
  ASSIGN_OR_RETURN(std::string folder, MakeFolder("system"));
  std::unique_ptr<MiniSystem> system(new MiniSystem(folder));
  std::filesystem::create_directory(folder + "/sections");
  for (const auto& [service, lines] : options.sections) {
    std::ofstream(fmt::format("{}/sections/{}.yaml", folder, service)) << lines;
  }
  if (options.prepare) RETURN_IF_ERROR(options.prepare(folder));
  RETURN_IF_ERROR(system->StartStack(options.nodes, options.replicas, options.arguments));
  system->Reconnect();
  return system;
}

MiniSystem::~MiniSystem() {
  database_.reset();
  if (const auto stopped = Tool({"stack/stop", folder_}); !stopped.ok()) {
    fmt::print(stderr, "{}\n", Message(stopped.status()));
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::string> MiniSystem::Tool(const std::vector<std::string>& words) {
  std::vector<std::string> command = words;
  command[0] = ToolPath(words[0]);
  return Run(fmt::format("FLUXQUEUE_BIN={} {} 2>&1",
                         ShellQuote(fmt::format("{}/bin", FLUXQUEUE_BINARY_DIR)),
                         ShellCommand(command)));
}

absl::Status MiniSystem::StartStack(int nodes,
                                    int replicas,
                                    const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"stack/start",
                                    folder_,
                                    "--test",
                                    "--signed",
                                    "--nodes",
                                    std::to_string(nodes),
                                    "--replicas",
                                    std::to_string(replicas),
                                    "--parent",
                                    std::to_string(getpid())};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return Tool(words).status();
}

absl::Status MiniSystem::StartReplicas(int replicas) {
  return StartStack(0, replicas, {});
}

void MiniSystem::Reconnect() {
  database_ = std::make_unique<postgres::Connection>(postgres::Options{
      .dsn = ReadLine(folder_ + "/postgres/dsn"), .application = "test", .schema = "public"});
}

absl::StatusOr<std::string> MiniSystem::Kubectl(const std::vector<std::string>& arguments,
                                                const std::string& input) {
  const std::string input_file = folder_ + "/kubectl-input";
  const std::string error_file = folder_ + "/kubectl-error";
  std::ofstream(input_file) << input;
  ASSIGN_OR_RETURN(ShellResult result,
                   RunAny(fmt::format("{} <{} 2>{}",
                                      KubectlCommand(folder_ + "/kubeconfig", arguments),
                                      ShellQuote(input_file),
                                      ShellQuote(error_file))));
  if (result.exit_code == 0) return std::move(result.output);
  std::ifstream errors(error_file);
  return Unavailable("kubectl {}: {}",
                     ShellCommand(arguments),
                     std::string(std::istreambuf_iterator<char>(errors), {}));
}

absl::StatusOr<ShellResult> MiniSystem::Fluxqueue(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {fmt::format("{}/bin/fluxqueue", FLUXQUEUE_BINARY_DIR)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunAny(fmt::format(
      "FLUXQUEUE_CONFIG={}/fluxqueue.yaml {} 2>&1", ShellQuote(folder_), ShellCommand(words)));
}

absl::StatusOr<std::vector<MiniSystem::Row>> MiniSystem::Query(const std::string& sql) {
  std::vector<Row> rows;
  absl::Status status;
  const absl::Status asked = WaitFor(
      [&] {
        status = database_->Query([&](pqxx::transaction_base& tx) {
          rows.clear();
          for (const pqxx::row& found : tx.exec(sql)) {
            Row& row = rows.emplace_back();
            for (const pqxx::field& field : found) {
              row.emplace_back(field.is_null() ? "" : field.c_str());
            }
          }
          return absl::OkStatus();
        });
        return !IsTransient(status);
      },
      kPatience,
      [&] { return Message(status); });
  RETURN_IF_ERROR(asked);
  RETURN_IF_ERROR(status);
  return rows;
}

absl::StatusOr<std::string> MiniSystem::QueryOne(const std::string& sql) {
  ASSIGN_OR_RETURN(const std::vector<Row> rows, Query(sql));
  if (rows.size() != 1 || rows[0].size() != 1) {
    return InvalidArgument("{} gave {} rows, wanted one value", sql, rows.size());
  }
  return rows[0][0];
}

absl::Status MiniSystem::StartService(const std::string& name, int replica) {
  return Tool({"services/start", folder_, name, "--replica", std::to_string(replica)}).status();
}

absl::Status MiniSystem::LaunchService(const std::string& name,
                                       int replica,
                                       const std::vector<std::string>& before) {
  const std::string instance = fmt::format("{}-{}", name, replica);
  std::vector<std::string> words = {folder_, instance};
  words.insert(words.end(), before.begin(), before.end());
  words.insert(words.end(),
               {fmt::format("{}/bin/fluxqueue-{}", FLUXQUEUE_BINARY_DIR, name),
                "--config",
                fmt::format("{}/config/{}.yaml", folder_, instance)});
  return Run(fmt::format("bash -euc '. {0}/log.sh; . {0}/proc.sh; proc_start \"$@\"' start {1}",
                         ToolPath("lib"),
                         ShellCommand(words)))
      .status();
}

absl::StatusOr<std::string> MiniSystem::Readiness(const std::string& name, int replica) {
  int port = 0;
  std::ifstream(fmt::format("{}/config/{}-{}.ports", folder_, name, replica)) >> port;
  return Run(fmt::format("curl -sSm 2 http://127.0.0.1:{}/readyz", port));
}

absl::Status MiniSystem::KillService(const std::string& name, int replica) {
  return Tool({"services/stop", folder_, name, "--replica", std::to_string(replica), "--kill"})
      .status();
}

std::string MiniSystem::ProcessOf(const std::string& process) const {
  const size_t name = process.rfind('/') + 1;
  const std::string pid = ReadLine(
      fmt::format("{}/{}logs/{}.pid", folder_, process.substr(0, name), process.substr(name)));
  std::error_code ignored;
  return std::filesystem::exists(fmt::format("/proc/{}/exe", pid), ignored) ? pid : "";
}

absl::Status MiniSystem::Signal(const std::string& process, int signal) const {
  const std::string pid = ProcessOf(process);
  if (pid.empty() || kill(std::stoi(pid), signal) != 0) return Unavailable("{} has ended", process);
  return absl::OkStatus();
}

absl::Status MiniSystem::End(const std::string& process, int signal) {
  RETURN_IF_ERROR(Signal(process, signal));
  return WaitFor([&] { return ProcessOf(process).empty(); },
                 kMostForAnEnd,
                 [&] { return fmt::format("{} to end after signal {}", process, signal); });
}

absl::Status MiniSystem::StopPart(const std::string& part) {
  return Tool({part + "/stop", fmt::format("{}/{}", folder_, part)}).status();
}

absl::Status MiniSystem::StartPart(const std::string& part) {
  std::vector<std::string> words = {part + "/start", fmt::format("{}/{}", folder_, part)};
  if (part != "kafka") words.emplace_back("--unsafe-no-fsync");
  return Tool(words).status();
}

absl::Status MiniSystem::LosePart(const std::string& part) {
  RETURN_IF_ERROR(StopPart(part));
  std::filesystem::remove_all(fmt::format("{}/{}/data", folder_, part));
  return absl::OkStatus();
}

absl::Status MiniSystem::KeepPart(const std::string& part) {
  const std::string data = fmt::format("{}/{}/data", folder_, part);
  RETURN_IF_ERROR(StopPart(part));
  // With its owner, which is not always us.
  RETURN_IF_ERROR(Run(fmt::format("cp -a {0} {0}.kept 2>&1", ShellQuote(data))).status());
  return StartPart(part);
}

absl::Status MiniSystem::TakePartBack(const std::string& part) {
  const std::string data = fmt::format("{}/{}/data", folder_, part);
  RETURN_IF_ERROR(LosePart(part));
  std::filesystem::rename(data + ".kept", data);
  return StartPart(part);
}

absl::Status MiniSystem::WaitFor(const std::function<bool()>& condition,
                                 std::chrono::seconds deadline,
                                 const std::function<std::string()>& describe) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return absl::DeadlineExceededError(
          ToAbsl(fmt::format("not within {} s: {}", deadline.count(), describe())));
    }
    std::this_thread::sleep_for(kLook);
  }
  return absl::OkStatus();
}

std::string MiniSystem::SaveBundle() {
  const absl::StatusOr<std::string> made = MakeFolder("bundle");
  if (!made.ok()) return Message(made.status());
  const std::string& bundle = *made;
  std::error_code ignored;
  for (const char* part :
       {"", "cluster/", "kafka/", "kafka/broker-2/", "kafka/broker-3/", "postgres/"}) {
    const std::string logs = fmt::format("{}logs", part);
    if (!std::filesystem::exists(folder_ + "/" + logs, ignored)) continue;
    std::filesystem::create_directories(bundle + "/" + part, ignored);
    std::filesystem::copy(folder_ + "/" + logs,
                          bundle + "/" + logs,
                          std::filesystem::copy_options::recursive,
                          ignored);
  }
  for (const char* table : {"queue.jobs",
                            "queue.job_events",
                            "queue.attempts",
                            "queue.cycles",
                            "matcher.allocations",
                            "matcher.graph_nodes",
                            "binder.slots",
                            "admission.workloads"}) {
    const auto copied = Run(
        fmt::format("psql {} -c {} > {}/{}.csv",
                    ShellQuote(ReadLine(folder_ + "/postgres/dsn")),
                    ShellQuote(fmt::format("copy (select * from {}) to stdout csv header", table)),
                    bundle,
                    table));
    if (!copied.ok()) std::ofstream(fmt::format("{}/{}.error", bundle, table)) << copied.status();
  }
  const auto objects = Kubectl({"get", "jobs,pods,fluxjobs,events,nodes", "-A", "-o", "yaml"});
  std::ofstream(bundle + "/objects.yaml") << (objects.ok() ? *objects : Message(objects.status()));
  const auto events = Fluxqueue({"replay", "-v"});
  std::ofstream(bundle + "/replay.txt")
      << (events.ok() ? events->output : Message(events.status()));
  const auto warnings =
      Run("grep -hE ' (WARN|ERROR) ' " + bundle + "/logs/*.log | sort | tail -n 20 | cut -c 1-600");
  return bundle + "\n" + (warnings.ok() ? *warnings : Message(warnings.status()));
}

}  // namespace fluxqueue::testing
