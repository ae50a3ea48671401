// A pool's records as its services have taken them: the facts of the jobs topic, then the pool's
// log, each in its order. From a file of `fluxqueue events dump`, from an archive
// (event_archive.h), or from Kafka.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "libs/verify/event_file.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

class EventSource {
 public:
  using Each = std::function<absl::Status(const verify::EventLine&)>;

  virtual ~EventSource() = default;
  // Once. Stops at the first status of `each` that is not OK, and returns it.
  virtual absl::Status Read(const Each& each) = 0;
  // What is read, from the first record on. Of Kafka with what is kept of the partition: `to` as
  // it was when the source was made, or behind Read what was read.
  virtual const verify::EventFileHeader& header() const = 0;
};

// What is wrong with it, Read says.
std::unique_ptr<EventSource> EventsOfFile(std::string path);
// `pool` empty: the only one that there is. NotFound, or InvalidArgument where there are several,
// names those that there are.
absl::StatusOr<std::unique_ptr<EventSource>> EventsOfPool(const SystemConfig& config,
                                                          const std::string& pool);

}  // namespace fluxqueue::cli
