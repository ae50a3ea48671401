// What `uninstall --release-workloads` has found and done, for people and for programs. Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/fluxqueue/release_run.h"

namespace fluxqueue::cli {

// What has to go before workloads can be let go of.
struct Obstacle {
  std::string what{};
  std::string todo{};
};

struct ReleaseReport {
  bool really = false;
  std::vector<Obstacle> in_the_way{};
  std::vector<Released> all{};

  // Whether something is left that takes more than this command.
  bool leaves() const;
};

// `all`: names all objects, and not the first of many.
std::string Text(const ReleaseReport& report, bool all, bool colour);
nlohmann::json Json(const ReleaseReport& report);

}  // namespace fluxqueue::cli
