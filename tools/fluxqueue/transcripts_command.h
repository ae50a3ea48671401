// `fluxqueue conformance --library`: recorded calls on Fluxion's C interface, played on a library.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

// Plays transcripts.jsonl.gz of each directory and shows how many answers are equal; `verbose`:
// also the first of each sequence that is not. The exit code: 1 when one differs and is no better
// answer.
absl::StatusOr<int> PlayTranscripts(const Context& context,
                                    const std::string& library,
                                    const std::vector<std::string>& directories,
                                    bool verbose);

}  // namespace fluxqueue::cli
