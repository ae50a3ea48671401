// The subcommands, one file each (context.h).
#pragma once

#include <CLI/CLI.hpp>

#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

void RegisterJobs(CLI::App& app, Context& context);
void RegisterJob(CLI::App& app, Context& context);
void RegisterQueues(CLI::App& app, Context& context);
void RegisterNodes(CLI::App& app, Context& context);
void RegisterVerify(CLI::App& app, Context& context);
void RegisterReplay(CLI::App& app, Context& context);
void RegisterLoad(CLI::App& app, Context& context);
void RegisterMatch(CLI::App& app, Context& context);
void RegisterConformance(CLI::App& app, Context& context);

}  // namespace fluxqueue::cli
