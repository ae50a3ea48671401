// The subcommands, one file each (context.h).
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "tools/fluxqueue/context.h"
#include "tools/fluxqueue/s3_store.h"

namespace fluxqueue::cli {

// --library, of commands that replay logs.
inline void AddLibraryOption(CLI::App* sub, std::string* library) {
  sub->add_option("--library",
                  *library,
                  "Fluxion's library (libreapi_cli.so): pools with the engine fluxion need it")
      ->type_name("FILE");
}

// Of an option that names a pool's archive, beside a folder.
inline CLI::Validator S3Url() {
  return {[](const std::string& text) { return IsS3(text) ? "" : "it is not s3://BUCKET/PREFIX"; },
          "S3"};
}

void RegisterJobs(CLI::App& app, Context& context);
void RegisterJob(CLI::App& app, Context& context);
void RegisterReport(CLI::App& app, Context& context);
void RegisterExplain(CLI::App& app, Context& context);
// hold, release, cancel, priority, move
void RegisterControl(CLI::App& app, Context& context);
void RegisterRetry(CLI::App& app, Context& context);
void RegisterQueues(CLI::App& app, Context& context);
void RegisterNodes(CLI::App& app, Context& context);
void RegisterGraph(CLI::App& app, Context& context);
void RegisterTop(CLI::App& app, Context& context);
// drain, undrain
void RegisterDrain(CLI::App& app, Context& context);
void RegisterUninstall(CLI::App& app, Context& context);
void RegisterDeadLetters(CLI::App& app, Context& context);
void RegisterCycle(CLI::App& app, Context& context);
void RegisterLog(CLI::App& app, Context& context);
void RegisterConfig(CLI::App& app, Context& context);
void RegisterDoctor(CLI::App& app, Context& context);
void RegisterSupportBundle(CLI::App& app, Context& context);
void RegisterStats(CLI::App& app, Context& context);
void RegisterEvents(CLI::App& app, Context& context);
void RegisterVerify(CLI::App& app, Context& context);
void RegisterReplay(CLI::App& app, Context& context);
void RegisterMatch(CLI::App& app, Context& context);
void RegisterSimulate(CLI::App& app, Context& context);
void RegisterWorkload(CLI::App& app, Context& context);
void RegisterLoad(CLI::App& app, Context& context);
void RegisterConformance(CLI::App& app, Context& context);
void RegisterCompletion(CLI::App& app, Context& context);
// help, man
void RegisterManual(CLI::App& app, Context& context);
void RegisterStay(CLI::App& app, Context& context);

}  // namespace fluxqueue::cli
