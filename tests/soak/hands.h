// The soak's actions, done on a real system, and its looks at it.
//
// One thread.
#pragma once

#include <map>
#include <string>

#include "libs/testing/mini_system.h"
#include "tests/soak/commands.h"
#include "tests/soak/plan.h"
#include "tests/soak/world.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::soak {

class Hands {
 public:
  // `system` outlives this.
  explicit Hands(testing::MiniSystem* system) : system_(system) {}

  // The nodes, queues and kinds that the actions are about.
  absl::Status Prepare();
  // The nodes that are missing.
  absl::Status MakeNodes();
  static std::vector<std::string> NodeNames();

  absl::Status Do(const Action& action);
  absl::StatusOr<World> Look();

  // By service: the process that runs it, as started by us last.
  const std::map<std::string, std::string>& processes() const { return processes_; }
  // "" when there is none.
  std::string ProcessOf(const std::string& service) const;

 private:
  absl::StatusOr<std::string> Run(const Command& command, const std::string& before);
  absl::Status KillService(const std::string& service);

  testing::MiniSystem* const system_;
  std::map<std::string, std::string> processes_;
};

}  // namespace fluxqueue::soak
