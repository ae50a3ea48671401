// The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, `;` begins a
// comment, -1 is unknown. Read are 1 job, 2 submit, 4 run time, 5 processors used and, where that
// is unknown, 8 processors asked; 9 time asked, 11 status (0 is failed), 12 user and 15 queue, each
// of which may be unknown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libs/trace/trace.h"

#include "absl/status/statusor.h"

namespace fluxqueue::trace {

// A job of p processors is p slots of one cpu, named "swf-<job>". A run time of 0 is less than a
// second. Left out, and counted: an unknown run time, and a number of processors that is unknown
// or 0. InvalidArgument names file, line, field and value.
absl::StatusOr<Trace> ParseSwf(std::string_view text, const Source& source);

// The jobs as ParseSwf reads them again, behind the lines of `comment`. REQUIRES: they are named
// "swf-<job>", their times are whole seconds, and their users and queues are numbers or unknown.
std::string FormatSwf(const std::vector<TraceJob>& jobs, std::string_view comment);

}  // namespace fluxqueue::trace
