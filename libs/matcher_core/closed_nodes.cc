#include "libs/matcher_core/closed_nodes.h"

#include <utility>

#include "libs/graph/holding.h"
#include "libs/matcher_core/windows.h"

namespace fluxqueue::matcher_core {

void ClosedNodes::CloseTo(const events::v1::Candidate& candidate,
                          std::vector<std::string> besides) {
  std::vector<std::string> open(candidate.windows().begin(), candidate.windows().end());
  if (told_ && open_windows_ == open && besides_ == besides) return;
  std::vector<graph::Closure> closures = Closures(state_, open, now_s_);
  if (!kept_.empty()) {
    // A job that has an end is through before it.
    closures.push_back({.nodes = graph::Constraint::IsAnyHost(kept_),
                        .from_s = graph::kForever - 1,
                        .to_s = kNeverOver});
  }
  if (!besides.empty()) {
    closures.push_back(
        {.nodes = graph::Constraint::IsAnyHost(besides), .from_s = now_s_, .to_s = kNeverOver});
  }
  engine_.SetClosures(std::move(closures));
  told_ = true;
  open_windows_ = std::move(open);
  besides_ = std::move(besides);
}

void ClosedNodes::KeepFor(const std::string& job_id, std::vector<std::string> nodes) {
  kept_for_ = job_id;
  kept_ = std::move(nodes);
  told_ = false;
}

}  // namespace fluxqueue::matcher_core
