// `fluxqueue events archive`: what came since the last time goes into a folder.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

// Below `events`.
void AddEventsArchive(CLI::App* events, Context& context);

}  // namespace fluxqueue::cli
