#include "libs/matcher_core/closed_nodes.h"

#include <utility>

#include <fmt/format.h>

#include "libs/graph/holding.h"
#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/windows.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

void ClosedNodes::CloseTo(const events::v1::Candidate& candidate,
                          std::vector<std::string> besides) {
  std::vector<std::string> open(candidate.windows().begin(), candidate.windows().end());
  std::shared_ptr<const PodBook::Closures> by_rules;
  if (const graph::Jobspec* jobspec = UnderRules(candidate); jobspec != nullptr) {
    by_rules =
        pods_.ClosuresFor(KeyOf(candidate), *jobspec, reservations_.behind(), candidate.rule());
  }
  if (told_ && open_windows_ == open && besides_ == besides && by_rules_ == by_rules) return;
  std::vector<graph::Closure> closures = Closures(view_.state, open, now_s_);
  if (by_rules != nullptr) {
    closures.insert(closures.end(), by_rules->all.begin(), by_rules->all.end());
  }
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
  const bool once = model::HasRules(view_.state.config().rules(), model::kClosesOnce);
  for (graph::Closure& closure : closures) closure.counts_as_taken = !once;
  engine_.SetClosures(std::move(closures));
  told_ = true;
  open_windows_ = std::move(open);
  besides_ = std::move(besides);
  by_rules_ = std::move(by_rules);
}

void ClosedNodes::Prepare(const events::v1::Candidate& candidate) {
  if (const graph::Jobspec* jobspec = UnderRules(candidate); jobspec != nullptr) {
    pods_.Prepare(*jobspec);
  }
}

const graph::Jobspec* ClosedNodes::UnderRules(const events::v1::Candidate& candidate) const {
  if (view_.ruled.empty() && !view_.nodes.ForeignHaveRules()) return nullptr;
  const Spec* spec = view_.specs.Find(SpecKey(candidate.job_id(), candidate.part()));
  return spec == nullptr ? nullptr : spec->jobspec.get();
}

graph::Jobspec ClosedNodes::Preferring(const events::v1::Candidate& candidate,
                                       graph::Jobspec jobspec) {
  std::shared_ptr<const graph::NodeWorths> worths = pods_.WorthsFor(jobspec, candidate.rule());
  if (worths == nullptr) return jobspec;
  return graph::WithWorths(std::move(jobspec), std::move(worths));
}

std::string ClosedNodes::RefusedAs(const graph::Jobspec& jobspec,
                                   const events::v1::Candidate& candidate) const {
  std::string as = jobspec.shape;
  for (const std::string& window : candidate.windows()) as += "\n" + window;
  if (by_rules_ != nullptr) as += by_rules_->text;
  // What it has to keep among its own pods depends on who they are.
  if (IsPlacedOneByOne(jobspec)) {
    as += "\n" + jobspec.pods.space;
    for (const auto& [key, value] : jobspec.pods.labels) as += fmt::format("\n{}={}", key, value);
  }
  return as;
}

void ClosedNodes::KeepFor(const std::string& job_id, std::vector<std::string> nodes) {
  kept_for_ = job_id;
  kept_ = std::move(nodes);
  told_ = false;
}

}  // namespace fluxqueue::matcher_core
