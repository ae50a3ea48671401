#include "libs/queue_core/resize.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "libs/model/job_of.h"

namespace fluxqueue::queue_core {
namespace {

using events::v1::JobUpdated;
using model::JobState;

// What it holds is what it held before it asked for another number.
void KeepHeld(Job* job) {
  if (job->held_slots == 0) job->held_slots = job->slots;
}

// Slots that it lost count as given back: it grows in their place, too.
void BecomeElastic(Job* job) {
  KeepHeld(job);
  std::vector<uint32_t> lost;
  lost.reserve(LostSlots(*job).size());
  for (const LostSlot& one : LostSlots(*job)) lost.push_back(one.slot);
  if (!IsElastic(*job)) job->succeeded = job->released_slots.size() - lost.size();
  AddVacated(lost, job);
  job->lost.reset();
}

}  // namespace

const events::v1::PartSpec* NewSpec(const JobUpdated& updated, const Job& job) {
  const events::v1::PartSpec* spec = model::SpecOf(updated);
  return spec != nullptr && spec->revision() > job.revision ? spec : nullptr;
}

bool GoesOn(const JobUpdated& updated, const Job& job) {
  const bool started = job.state == JobState::kBound || job.state == JobState::kRunning;
  return started && !updated.has_spec() && updated.resized().min_slots() == 0;
}

void TakeSize(const JobUpdated& updated, Job* job) {
  const events::v1::PartSpec& spec = *NewSpec(updated, *job);
  const uint32_t before = IsElastic(*job) ? job->min_slots : job->slots;
  job->resized = GoesOn(updated, *job);
  if (job->resized) {
    BecomeElastic(job);
  } else if (updated.has_resized() && model::kHoldingStates.Has(job->state)) {
    KeepHeld(job);
  }
  job->slots = spec.slots();
  job->min_slots = job->resized ? std::min(before, spec.slots()) : spec.min_slots();
  if (updated.completions() == 0) return;
  auto workload = std::make_shared<events::v1::Workload>(*job->workload);
  workload->set_completions(updated.completions());
  job->workload = std::move(workload);
}

std::vector<uint32_t> NewlyVacated(const Job& job, const events::v1::SlotsVacated& vacated) {
  const std::vector<uint32_t> vacating = Vacating(job);
  std::vector<uint32_t> slots(vacated.slots().begin(), vacated.slots().end());
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  std::erase_if(slots, [&](uint32_t slot) {
    const auto among = [slot](const std::vector<uint32_t>& rising) {
      return std::binary_search(rising.begin(), rising.end(), slot);
    };
    const bool closed = job.resized && slot < job.held_slots && !among(job.released_slots);
    return !among(vacating) && !closed;
  });
  return slots;
}

void AddVacated(const std::vector<uint32_t>& slots, Job* job) {
  std::vector<uint32_t> all;
  std::set_union(job->vacated_slots.begin(),
                 job->vacated_slots.end(),
                 slots.begin(),
                 slots.end(),
                 std::back_inserter(all));
  job->vacated_slots = std::move(all);
}

}  // namespace fluxqueue::queue_core
