// `fluxqueue events dump`: a pool's log as one file.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

// Below `events`.
void AddEventsDump(CLI::App* events, Context& context);

}  // namespace fluxqueue::cli
