#include "services/binder/domain/vacate_planner.h"

#include <cstddef>
#include <utility>

#include "services/binder/domain/stop_planner.h"

namespace fluxqueue::binder {

void PlanVacate(PlanContext& context, BindJob* job) {
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
