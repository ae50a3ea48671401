#include "services/binder/domain/vacate_planner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "services/binder/domain/stop_planner.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;

bool IsLive(const Slot& slot) {
  return slot.Kept() && !slot.losing;
}

// The last ones, so that an Indexed Job keeps those of the indexes that it still has.
void CloseSurplus(BindJob* job) {
  if (!job->fact->resized()) return;
  const auto live =
      static_cast<size_t>(std::count_if(job->slots.begin(), job->slots.end(), IsLive));
  const size_t most = job->fact->max_slots();
  if (live <= most) return;
  size_t surplus = live - most;
  auto with = std::make_shared<JobFact>(*job->fact);
  for (size_t i = job->slots.size(); i > 0 && surplus > 0; --i) {
    const Slot& slot = job->slots[i - 1];
    if (!IsLive(slot) || slot.Occupied()) continue;
    with->add_vacate(static_cast<uint32_t>(i - 1));
    --surplus;
  }
  if (with->vacate_size() == job->fact->vacate_size()) return;
  std::sort(with->mutable_vacate()->begin(), with->mutable_vacate()->end());
  job->fact = std::move(with);
  CloseSlots(job);
}

}  // namespace

void PlanVacate(PlanContext& context, BindJob* job) {
  CloseSurplus(job);
  const HowToStop how{.suspends = false, .since = job->vacate_since};
  Saying saying{
      .partition = job->partition, .envelope = {}, .after = context.now - job->vacate_since};
  saying.envelope.set_pool(job->fact->pool());
  events::v1::SlotsVacated* vacated = saying.envelope.mutable_slots_vacated();
  vacated->set_job_id(job->id());
  vacated->set_attempt(job->attempt());
  for (size_t i = 0; i < job->slots.size(); ++i) {
    Slot& slot = job->slots[i];
    if (!slot.vacating || slot.vacated_said) continue;
    if (!StopSlot(context, how, static_cast<int>(i), job)) continue;
    if (!context.may_speak) {
      context.speak_later = true;
      continue;
    }
    slot.vacated_said = true;
    vacated->add_slots(static_cast<uint32_t>(i));
  }
  if (!vacated->slots().empty()) context.sayings->push_back(std::move(saying));
}

}  // namespace fluxqueue::binder
