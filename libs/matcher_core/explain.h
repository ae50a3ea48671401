// Why a candidate does not start now: a sentence for people, and how many of its slots would have
// room.
//
// To explain is to look at all nodes, so the few that are refused first are told: these are next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/jobspec.h"
#include "libs/matcher_core/closed_nodes.h"
#include "libs/matcher_core/reservations.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

class Explainer {
 public:
  // `now_s`: the cycle's. All outlive it.
  Explainer(const View& view,
            int64_t now_s,
            const ClosedNodes& closed,
            const Reservations& reservations)
      : view_(view), now_s_(now_s), closed_(closed), reservations_(reservations) {}

  struct Why {
    std::string sentence;
    uint32_t slots_now = 0;
  };
  // `never`: no state of the graph could run it.
  Why Explain(const events::v1::Candidate& candidate, const graph::Jobspec& jobspec, bool never);

 private:
  std::string Sentence(const events::v1::Candidate& candidate,
                       const graph::Jobspec& jobspec,
                       const graph::Explanation& why,
                       bool never) const;

  const View& view_;
  const int64_t now_s_;
  const ClosedNodes& closed_;
  const Reservations& reservations_;
  size_t explained_ = 0;
};

}  // namespace fluxqueue::matcher_core
