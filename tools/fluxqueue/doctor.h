// What an installation must have, looked at from outside: each finding says what to do.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "libs/base/clock.h"

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

// Postgres and Kafka: reachable, tables and topics as this version wants them, clocks, lag,
// outboxes, dead letters.
void ExamineStores(const SystemConfig& config, const Clock& clock, Findings* findings);
// The API server: version, clock, our resources and policies, the webhook and its certificate, the
// rights of the services' accounts. `system`: our namespace.
void ExamineCluster(const SystemConfig& config,
                    const std::string& system,
                    const Clock& clock,
                    Findings* findings);

}  // namespace fluxqueue::cli
