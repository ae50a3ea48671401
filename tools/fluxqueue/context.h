// What every subcommand has: where the system is, how to print, and where the result goes.
//
// A subcommand is one file with a function Register…(CLI::App&, Context&), listed in commands.h. It
// adds its options, and its callback sets Context::command; main runs that after the whole command
// line has been parsed:
//
//   void RegisterQueues(CLI::App& app, Context& context) {
//     CLI::App* sub = app.add_subcommand("queues", "…");
//     sub->callback([&context] { context.command = [&context] { return RunQueues(context); }; });
//   }
//
// Its footer is what help and the manual page say behind the options: paragraphs, then "Examples:"
// and a line for each. The type name of an option tells the completion what to offer: JOB, QUEUE,
// NODE and POOL are names of the live system, FILE is a file, "a|b" are the words a and b.
//
// A command returns the program's exit status (0: fine, 1: what it looked for is wrong), or why it
// could not do its work (exit status 2). One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "libs/base/clock.h"
#include "libs/kafka/client.h"
#include "libs/kubernetes/client.h"
#include "libs/rpc/channel.h"

#include "absl/status/statusor.h"
#include "tools/fluxqueue/cluster_exec.h"

namespace fluxqueue::cli {

// CSV is for reports alone.
enum class Output { kTable, kWide, kJson, kYaml, kCsv };

// Of a system whose file somebody has named; one that is only found has to run.
enum class Needs {
  kRunning,
  kNothing,  // the command looks into what is broken
};

// The file that `tools/up` and the chart write: postgres.dsn (or $FLUXQUEUE_POSTGRES_DSN),
// kafka.bootstrap and kafka.properties, kubernetes.kubeconfig, signing.key and signing.keys,
// archive.folder, and how the queue is called: grpc.{certificate, key, authority, name}
// (libs/rpc/channel.h).
struct SystemConfig {
  std::string file;  // where it was found
  std::string dsn;
  kafka::Brokers brokers{};
  std::string kubeconfig;  // empty: the service account of the pod that this runs in
  // Whether there is a cluster to look at: a kubeconfig, or a pod's service account.
  bool has_cluster = false;
  rpc::ChannelFiles grpc{};
  std::string archive{};      // the folder of `events archive`; empty: it is named there
  std::string signing_key{};  // of what is said again; empty: it is not signed
  std::string
      signing_keys{};  // what is said again must be signed by one of these; empty: it need not
};

// InvalidArgument: the file names none.
absl::StatusOr<std::unique_ptr<kubernetes::Client>> ReachCluster(const SystemConfig& config);

struct Context {
  // From the command line.
  std::string config_file;
  ClusterAccess cluster;
  std::vector<std::string> arguments{};  // all, behind the program's name
  Output output = Output::kTable;

  bool colour = false;
  size_t width = 100;  // of what is drawn, in characters
  // What changes by itself (ages) is left out, so that two texts differ only when the system has
  // changed.
  bool steady = false;
  RealClock clock{};
  std::function<absl::StatusOr<int>()> command{};

  bool structured() const { return output == Output::kJson || output == Output::kYaml; }
  bool wide() const { return output == Output::kWide; }
  // The text for -o json or yaml, with its end.
  std::string Structured(const nlohmann::json& value) const;

  // Reads the file of the system that the command is about (system_choice.h). Where that is a
  // cluster, the command runs there in place of here, and the process ends with its exit status:
  // this returns only why that cannot be. `file`, if not empty, is what the command writes: in the
  // cluster it writes "-", standard output, which is then that file here. Unavailable: neither
  // Postgres nor Kafka of the file's system answers; asks them for at most some 4 s.
  absl::StatusOr<SystemConfig> LoadConfig(const std::string& file = "",
                                          Needs needs = Needs::kRunning) const;
  // The command is about a cluster, and not about a file's system: LoadConfig would run it there.
  bool AboutCluster() const;
  Millis Now() const;
};

}  // namespace fluxqueue::cli
