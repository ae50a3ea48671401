// One owner's time with a stream, from its claim on. A stream's name has it, so that its sequences
// begin at 1 with each owner, and never mean two messages: also where a database that was restored
// forgets some that were given out, or hands out an epoch for the second time.
//
//   "queue/3.5c21f09ae3b17d48"    service, partition or shard, incarnation
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fluxqueue::delivery {

// Random, above 0. Thread-safe.
int64_t NewIncarnation();

// REQUIRES: `stream` has none yet.
std::string WithIncarnation(std::string_view stream, int64_t incarnation);
// Without it.
std::string_view BaseOf(std::string_view stream);
// Earlier versions named streams without one, and each owner went on with the sequences of the
// last.
bool HasIncarnation(std::string_view stream);

}  // namespace fluxqueue::delivery
