// The jobspecs of live jobs, as they came last. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "libs/base/journaled.h"
#include "libs/graph/jobspec.h"

namespace fluxqueue::matcher_core {

using SpecKey = std::pair<std::string, uint32_t>;  // job id, part

struct Spec {
  uint32_t revision = 0;
  uint32_t slots = 0;
  std::string text;
  // Null when the jobspec is bad; `error` then says how.
  std::shared_ptr<const graph::Jobspec> jobspec;
  std::string error;

  // The text says the rest.
  friend bool operator==(const Spec& a, const Spec& b) {
    return a.revision == b.revision && a.slots == b.slots && a.text == b.text;
  }
};

using Specs = Journaled<std::map<SpecKey, Spec>>;
// Of these, those to which it matters where other pods run (libs/graph/pod_rules.h), by namespace.
using RuledSpecs = Journaled<std::map<std::pair<std::string, SpecKey>, bool>>;

inline bool HasRules(const Spec& spec) {
  return spec.jobspec != nullptr && LooksAtPods(*spec.jobspec);
}

inline bool HaveRules(const RuledSpecs& ruled, const std::string& space) {
  const auto first = ruled.map().lower_bound({space, SpecKey()});
  return first != ruled.map().end() && first->first.first == space;
}

// `slots`: as the job was submitted; the text has to say the same.
Spec MakeSpec(uint32_t revision, uint32_t slots, std::string text);

}  // namespace fluxqueue::matcher_core
