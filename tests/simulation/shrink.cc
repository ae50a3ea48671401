#include "tests/simulation/shrink.h"

#include <numeric>
#include <utility>

namespace fluxqueue::simulation {
namespace {

// Takes out the first that is not needed.
bool TakeOne(const Subject& subject, const Trial& trial, std::vector<size_t>* faults) {
  for (size_t i = 0; i < faults->size(); ++i) {
    std::vector<size_t> fewer = *faults;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (subject.run(Only(trial, fewer)).error.empty()) continue;
    *faults = std::move(fewer);
    return true;
  }
  return false;
}

}  // namespace

Trial Only(const Trial& trial, const std::vector<size_t>& faults) {
  Trial only = trial;
  only.faults.clear();
  for (const size_t fault : faults) {
    if (fault < trial.faults.size()) only.faults.push_back(trial.faults[fault]);
  }
  return only;
}

std::vector<size_t> Shrink(const Subject& subject, const Trial& trial) {
  std::vector<size_t> faults(trial.faults.size());
  std::iota(faults.begin(), faults.end(), size_t{0});
  while (TakeOne(subject, trial, &faults)) {
  }
  return faults;
}

}  // namespace fluxqueue::simulation
