// A pool's log as a file: a header, then a line for each record (event_line.h), first the facts of
// the jobs topic and then the pool's log, each in its order. `fluxqueue events dump` writes it,
// gzipped:
//
//   {"fluxqueue_events":1,"build":"1.4.0","rules":14,"pool":"default","whole":true}
//   {"append_ms":1700000000123,"partition":3,"offset":17,"envelope":{…}}
//
// Files of earlier releases have no header. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "libs/verify/event_line.h"

#include "absl/status/statusor.h"

namespace fluxqueue::verify {

inline constexpr int kEventFileVersion = 1;

// Of what was there then, the first that a file does not have.
struct EventReach {
  int64_t log = 0;                 // offset in the pool's partition
  std::map<int, int64_t> facts{};  // in each partition of the jobs topic

  friend bool operator==(const EventReach&, const EventReach&) = default;
};

struct EventFileHeader {
  int version = kEventFileVersion;
  std::string build{};  // of the program that wrote it
  uint32_t rules = 0;   // the latest that it knew (libs/model/rules.h)
  std::string pool{};
  bool whole = true;  // it begins where the pool began
  // It is one of an archive: from where the one before it ends, to where it ends.
  bool archived = false;
  EventReach from{};
  EventReach to{};
};

// With its end.
std::string FormatEventFileHeader(const EventFileHeader& header);

// The lines of a file, read in their order.
class EventFileReader {
 public:
  // `file`: its name.
  explicit EventFileReader(std::string_view file) : file_(file) {}

  // Unset: the line is no record. InvalidArgument names file, line and what is wrong with it, such
  // as a record of another pool than those before it.
  absl::StatusOr<std::optional<EventLine>> Read(std::string_view line);

  // As far as it was read; of a file without one: version 0.
  const EventFileHeader& header() const { return header_; }

 private:
  absl::Status ReadHeader(std::string_view line);
  absl::StatusOr<EventLine> ReadRecord(std::string_view line);

  const std::string file_;
  EventFileHeader header_{.version = 0};
  size_t lines_ = 0;
};

}  // namespace fluxqueue::verify
