// Of which gang the pods are that somebody makes, and what their maker may not ask for then. Pure.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "libs/kubernetes/group_table.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/views.h"
#include "services/admission/domain/review.h"

namespace fluxqueue::admission {

struct Grouping {
  std::optional<kubernetes::GroupName> group;  // unset: none
  // What would tell whether they are a gang at first; without it each is a job of its own.
  std::optional<Absent> look = {};
  // They are no group: of a pod, what says which places it has (place_rules.h).
  std::optional<Absent> places = {};
  // What is answered before the group is known: a refusal, or a look at what has its size.
  std::optional<Verdict> answer;
};

// `of_template`: the pods are not made yet: only bad keys are refused.
Grouping GroupingOf(const Review& review,
                    const kubernetes::PodKeys& pods,
                    bool of_template,
                    const kubernetes::GroupTable& table);

// Of a Job whose pods are of a group, and start with them. Unset: it says no size of its own.
std::optional<Verdict> CheckHasNoSize(const kubernetes::UserKeys& keys);
void WarnOfDeadline(const kubernetes::Job& job, Verdict* verdict);

// Pods that are made one after the other, each once the one before is ready, never are a gang.
// `root`: what makes them. `inner`: with their template.
std::optional<Verdict> CheckMakesAllAtOnce(const nlohmann::json& root,
                                           const Review& inner,
                                           const kubernetes::GroupTable& table);

}  // namespace fluxqueue::admission
