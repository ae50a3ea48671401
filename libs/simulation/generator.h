// Workloads for the simulator: jobs of the Lublin–Feitelson model (lublin.h), submitted by users
// who repeat themselves and say how long their jobs will run, as people do.
//
// A user works in sessions: one job like the last (the same width, a run time around the same
// value), again and again, with now and then one that ends early; then another session, with a job
// that the user has had before or with a new one of the model. Some users submit far more than
// others. The times of arrival are the model's, stretched so that the load is what was asked for.
//
// Pure and deterministic: the same options give the same jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libs/trace/trace.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::simulation {

// What users ask for.
enum class Requests {
  kExact,    // what the job will run
  kUniform,  // 1 to 5 times that, drawn for each job
  kModal,    // a round value that is long enough, chosen for each kind of job: 15 min, 1 h, 4 h …
};

std::string_view Name(Requests requests);
// "exact", "uniform", "modal". InvalidArgument names those.
absl::StatusOr<Requests> ParseRequests(std::string_view name);

struct GeneratorOptions {
  uint64_t seed = 1;
  int64_t jobs = 10'000;     // 1 to 1,000,000
  int64_t processors = 256;  // of the machine, 2 to 1,000,000
  // What the jobs use of the machine between the first and the last submission: above 0, at most 2.
  double load = 0.9;
  int64_t users = 50;  // 1 to 10,000
  Requests requests = Requests::kModal;
  // Shares of the users, 0 to 1 each: who ask for nothing, and who ask for less than they run.
  double without_request = 0;
  double liars = 0;
  // Of the jobs, 0 to 1: who crash within a minute.
  double failures = 0;
  // Run times change with time: those of the last jobs are this times those of the model. 0.01
  // to 100.
  double drift = 1;
  // The user of this number says 1 s of each job; 0: none does.
  int64_t one_second_user = 0;
};

// InvalidArgument names the option, its value and what is allowed.
absl::Status CheckGenerator(const GeneratorOptions& options);

// REQUIRES: CheckGenerator says that they are good. Times are whole seconds, the first job comes at
// 0.
trace::Trace Generate(const GeneratorOptions& options);

// Jobs of n processors become gangs on nodes of `gpus_of_node` gpus, which are asked for in the
// place of processors, with kCpusOfGpu cpus each: one pod where n fits on a node, else pods of
// whole nodes.
void MakeGpuGangs(int64_t gpus_of_node, trace::Trace* trace);
inline constexpr int64_t kCpusOfGpu = 8;

// The smallest of the values that users like that is not below `seconds`; beyond the largest of
// them whole days. Seconds.
int64_t ModalRequest(double seconds);

}  // namespace fluxqueue::simulation
