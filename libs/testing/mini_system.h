// The whole system for tests, by tools/stack/start: real Kafka, PostgreSQL and control plane with
// kwok nodes, and the services as processes of their own, with the rights of their service
// accounts. In a folder of its own, on free loopback ports; gone with the object, or with the
// process.
//
// One thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libs/postgres/connection.h"
#include "libs/testing/shell.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::testing {

struct MiniSystemOptions {
  int nodes = 10;                        // kwok nodes of 8 cores and 32 GiB
  int replicas = 1;                      // of each service
  std::vector<std::string> arguments{};  // more, for tools/stack/start
  // By service: lines of YAML for its own section.
  std::map<std::string, std::string> sections{};
  // Given the folder, before anything is started in it.
  std::function<absl::Status(const std::string&)> prepare{};
};

class MiniSystem {
 public:
  using Row = std::vector<std::string>;

  // Returns when every service is ready. Unavailable: the end of the log of what failed.
  static absl::StatusOr<std::unique_ptr<MiniSystem>> Start(const MiniSystemOptions& options);
  ~MiniSystem();
  MiniSystem(const MiniSystem&) = delete;
  MiniSystem& operator=(const MiniSystem&) = delete;

  const std::string& folder() const { return folder_; }

  // kubectl as administrator; `input` is its standard input ("apply", "-f", "-").
  absl::StatusOr<std::string> Kubectl(const std::vector<std::string>& arguments,
                                      const std::string& input = "");
  // The program `fluxqueue` with this system's configuration.
  absl::StatusOr<ShellResult> Fluxqueue(const std::vector<std::string>& arguments);
  // As the database's owner; all values as text, NULL as "". Waits some seconds for a database that
  // is away.
  absl::StatusOr<std::vector<Row>> Query(const std::string& sql);
  // From now on asks the database that DIR/postgres/dsn names.
  void Reconnect();
  // The only value of the only row.
  absl::StatusOr<std::string> QueryOne(const std::string& sql);

  // This many of each service, side by side. Returns when all are ready.
  absl::Status StartReplicas(int replicas);
  // Returns when it is ready. One that runs is left alone.
  absl::Status StartService(const std::string& name, int replica = 1);
  // Starts one that has run before, as it was, and does not wait: what it needs may be away.
  // `before`: words before the program's, such as {"env", "A=b"}.
  absl::Status LaunchService(const std::string& name,
                             int replica = 1,
                             const std::vector<std::string>& before = {});
  // What /readyz says: "ok", or what it waits for. Unavailable: it does not answer.
  absl::StatusOr<std::string> Readiness(const std::string& name, int replica = 1);
  // SIGKILL, in the middle of whatever it does.
  absl::Status KillService(const std::string& name, int replica = 1);

  // A process is called "queue-1", or, of a part, "cluster/kube-apiserver". "" when it does not
  // run.
  std::string ProcessOf(const std::string& process) const;
  absl::Status Signal(const std::string& process, int signal) const;
  // With SIGKILL or SIGTERM: returns when it has gone.
  absl::Status End(const std::string& process, int signal);

  // "kafka", "postgres", or the control plane ("cluster"): away, and back with its data on the same
  // port.
  absl::Status StopPart(const std::string& part);
  absl::Status StartPart(const std::string& part);
  // "kafka" as StopPart; StartPart then brings it back on the same port, empty.
  absl::Status LosePart(const std::string& part);
  // "kafka" or "postgres", which is away meanwhile: its data are set aside, and put back as they
  // were then.
  absl::Status KeepPart(const std::string& part);
  absl::Status TakePartBack(const std::string& part);

  // Asks `condition` until it is true: OK, or DeadlineExceeded with what `describe` then says.
  absl::Status WaitFor(const std::function<bool()>& condition,
                       std::chrono::seconds deadline,
                       const std::function<std::string()>& describe);

  // Logs, tables as CSV, topics and cluster objects, into a folder that stays. Returns its path and
  // the last warnings of the logs, one a line.
  std::string SaveBundle();

 private:
  explicit MiniSystem(std::string folder);

  absl::StatusOr<std::string> Tool(const std::vector<std::string>& words);
  absl::Status StartStack(int nodes, int replicas, const std::vector<std::string>& arguments);

  const std::string folder_;
  std::unique_ptr<postgres::Connection> database_;
};

}  // namespace fluxqueue::testing
