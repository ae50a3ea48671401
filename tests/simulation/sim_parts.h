// What a process has of the simulated bus: a member of a group, and a producer.
#pragma once

#include <memory>

#include "libs/kafka/bus.h"
#include "tests/simulation/sim_bus.h"

namespace fluxqueue::simulation {

std::unique_ptr<kafka::Subscription> JoinGroup(SimBus& bus,
                                               const Owner& owner,
                                               const kafka::ConsumerOptions& options);
std::unique_ptr<kafka::Appender> OpenAppender(SimBus& bus, kafka::OnAcknowledged acknowledged);

}  // namespace fluxqueue::simulation
