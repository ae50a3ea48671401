// `fluxqueue rebuild`: the tables of queue and matcher from a pool's log.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

void RegisterRebuild(CLI::App& app, Context& context);

}  // namespace fluxqueue::cli
