#include "libs/matcher_core/explain.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/matcher_core/windows.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {
namespace {

// Of the shapes that one cycle refuses.
constexpr size_t kMostExplained = 16;

}  // namespace

Explainer::Why Explainer::Explain(const events::v1::Candidate& candidate,
                                  const graph::Jobspec& jobspec,
                                  bool never) {
  if (!never && explained_++ >= kMostExplained) return {"what it asks for is in use", 0};
  const bool is_short = model::HasRules(view_.state.config().rules(), model::kShortReasons);
  const graph::Explanation why =
      view_.engine.Explain(jobspec, is_short ? graph::Wording::kShort : graph::Wording::kFull);
  std::string sentence = Sentence(candidate, jobspec, why, never);
  uint64_t slots_now = why.slots_now;
  const uint32_t closed = never ? 0 : closed_.ClosedByRules();
  const bool is_of_rules = closed > 0 || (!never && IsPlacedOneByOne(jobspec));
  if (is_of_rules) slots_now = std::min<uint64_t>(slots_now, jobspec.slots - 1);
  if (is_of_rules && closed == 0) {
    sentence += "; its pods do not fit by the rules that they have between each other";
  } else if (closed > 0) {
    sentence += fmt::format(
        "; rules between pods (affinity, anti-affinity, spread) close {} of the {} nodes to it",
        closed,
        why.nodes);
  }
  if (is_short) sentence = Cut(sentence, graph::kMostSentenceBytes);
  return {std::move(sentence), static_cast<uint32_t>(std::min<uint64_t>(slots_now, jobspec.slots))};
}

std::string Explainer::Sentence(const events::v1::Candidate& candidate,
                                const graph::Jobspec& jobspec,
                                const graph::Explanation& why,
                                bool never) const {
  if (never) {
    if (view_.state.synced()) return why.sentence;
    return fmt::format("{} (not all nodes of pool {} are known yet)", why.sentence, view_.pool);
  }
  if (std::optional<std::string> kept = WhyKept(view_, candidate, jobspec, why, now_s_)) {
    return *std::move(kept);
  }
  if (why.slots_now < jobspec.slots) return why.sentence;
  if (candidate.duration_s() == 0 && closed_.kept() > 0) {
    return fmt::format(
        "there is room, but {} of the nodes are kept from jobs without an end for job {}, which "
        "has waited long as the first of its queue",
        closed_.kept(),
        closed_.kept_for());
  }
  if (!reservations_.first().empty()) {
    return fmt::format("there is room, but it would delay job {}, which has a reservation",
                       reservations_.first());
  }
  return why.sentence;
}

}  // namespace fluxqueue::matcher_core
