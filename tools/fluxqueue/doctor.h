// What an installation must have, looked at from outside: each finding says what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "libs/base/clock.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/views.h"

#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

enum class Health { kOk, kWarn, kFail };

struct Finding {
  Health health = Health::kOk;
  std::string about;    // "topic fluxqueue.pool"
  std::string finding;  // what is so
  std::string todo{};   // what to do; empty: nothing
};

// Collects; pure.
class Findings {
 public:
  void Ok(std::string about, std::string finding);
  void Warn(std::string about, std::string finding, std::string todo);
  void Fail(std::string about, std::string finding, std::string todo);

  bool healthy() const;  // nothing has failed
  std::string Text(bool colour) const;
  nlohmann::json ToJson() const;

 private:
  std::vector<Finding> findings_;
};

// What a replica of a service says of itself.
struct Build {
  std::string service;
  std::string version;
};
// Read from its metrics.
std::optional<Build> BuildOf(std::string_view metrics);
// A finding for each service; `ours` is the version of this program.
void JudgeVersions(const std::vector<Build>& builds, const std::string& ours, Findings* findings);

// The services' replicas: which versions run. Asked are the pods in the namespace `system`, where
// this runs in a pod too, or else what tools/services has started.
void ExamineServices(const SystemConfig& config, const std::string& system, Findings* findings);
// A finding about the accounts in Postgres: how many own the schemas of the services, and whether
// ours may do what one of these may.
void JudgeAccounts(int64_t owners, bool owns, Findings* findings);
// Postgres and Kafka: reachable, tables and topics as this version wants them, clocks, lag,
// outboxes, dead letters.
void ExamineStores(const SystemConfig& config, const Clock& clock, Findings* findings);
// A finding about the pods of managed namespaces that have not been through the queue, and one for
// each namespace whose label fluxqueue.io/enforce has no effect. `pods`: what kBypass… let through.
void JudgeBypass(const std::vector<kubernetes::Namespace>& spaces,
                 const std::vector<kubernetes::ObjectMeta>& pods,
                 Findings* findings);
void ExamineBypass(kubernetes::Client& client, Findings* findings);
// The API server: version, clock, our resources and policies, the webhook and its certificate, what
// runs past the queue, the rights of the services' accounts. `system`: our namespace.
void ExamineCluster(const SystemConfig& config,
                    const std::string& system,
                    const Clock& clock,
                    Findings* findings);

}  // namespace fluxqueue::cli
