// Runs seeds of a subject and tells of them: what failed and how to see it again, what was reached.
#pragma once

#include "tests/simulation/trial.h"

namespace fluxqueue::simulation {

// What main returns. 1: a seed has failed, or a safety was taken out and no seed has seen it.
int Main(const Subject& subject, int argc, char** argv);

}  // namespace fluxqueue::simulation
