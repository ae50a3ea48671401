#include "libs/model/abandoned_cycle.h"

#include <fmt/format.h>

namespace fluxqueue::model {

events::v1::Envelope AbandonedCycle(const std::string& pool,
                                    uint64_t cycle_id,
                                    std::string_view service) {
  events::v1::Envelope message;
  message.set_pool(pool);
  message.mutable_command_accepted()->set_asked_by(fmt::format("the {}", service));
  message.mutable_command_accepted()->mutable_abandon_cycle()->set_cycle_id(cycle_id);
  return message;
}

}  // namespace fluxqueue::model
