// Jobs that wait for the ends of others: libs/scheduling/dependencies.h has the rules. Pure.
#pragma once

#include <string>
#include <vector>

#include "libs/queue_core/job_book.h"
#include "libs/queue_core/view.h"

namespace fluxqueue::queue_core {

struct Resolution {
  std::vector<Dependency> unmet;
  std::string never;  // not empty: a condition that can never come true
};
// Of a job that comes: live jobs by their id, others as they were named.
Resolution ResolveDependencies(const JobBook& book, const Job& job);

// What becomes of them when one of those jobs ends.
Resolution SettleDependencies(const Job& job, const std::string& ended, bool succeeded);

// It would, by what is known now.
bool WaitsForItself(const JobBook& book, const Job& job);

// For its user: of a job of others it says only what he said himself. REQUIRES: it depends on
// somebody.
std::string DependencySentence(const View& view, const Job& job);

}  // namespace fluxqueue::queue_core
