// The services that live with the cluster, as their app.cc puts them together: binder, cleanup, and
// admission without its webhook.
#pragma once

#include <memory>

#include "tests/simulation/cluster_world.h"
#include "tests/simulation/place.h"

namespace fluxqueue::simulation {

std::unique_ptr<Process> MakeBinder(ClusterWorld& world, Owner& owner);
std::unique_ptr<Process> MakeCleanup(ClusterWorld& world, Owner& owner);
std::unique_ptr<Process> MakeAdmission(ClusterWorld& world, Owner& owner);

}  // namespace fluxqueue::simulation
