// What the core knows of a pool besides its jobs and queues: small, and copied whole for the undo.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/scheduling/resources.h"

namespace fluxqueue::queue_core {

// What holds until the first PoolConfigured.
inline constexpr int64_t kDefaultGraceMs = 30'000;
inline constexpr int64_t kDefaultAnswerDeadlineMs = 10'000;
inline constexpr int64_t kDefaultRetryMinMs = 1'000;
inline constexpr int64_t kDefaultRetryMaxMs = 300'000;

// No submission has this number.
inline constexpr uint64_t kNobody = std::numeric_limits<uint64_t>::max();

// Sorted by name.
using Windows = std::vector<events::v1::WindowConfigured>;

// Whether somebody may have room to grow (elastic.h).
enum class Growth : uint8_t {
  kNone,   // all who would have more were tried since there last was room
  kAlong,  // to be tried in the next cycle
  kDue,    // a reason for a cycle
};

struct PoolState {
  bool begun = false;  // a message has been read
  bool synced = false;
  int64_t now_ms = 0;
  int64_t beginning_ms = 0;
  std::shared_ptr<const events::v1::PoolConfigured> config;
  uint64_t last_submission = 0;

  uint64_t last_cycle_id = 0;
  std::shared_ptr<const events::v1::CycleRequested> cycle;  // in flight; null: none
  int64_t cycle_asked_ms = 0;
  // The matcher has said so. What it says before it answers, the answer knows.
  bool room_changed = false;
  // Time, limits or a configuration may let somebody go whom the cycle in flight does not name, or
  // names as they were. The next cycle is due.
  bool ask_again = false;
  uint64_t blocked_head = 0;  // kNobody: nobody was free to be tried
  uint32_t window = 0;
  // Somebody has come into line, or changed there, since the last cycle was asked for.
  bool line_changed = false;
  Growth growth = Growth::kNone;
  // When those that have lost slots are tried again (replacement.h). 0: not before something else
  // happens.
  int64_t replace_ms = 0;
  // The last of them that was named, by submission; 0: one cycle named all.
  uint64_t replace_after = 0;
  // A cycle that named some was abandoned: none is named before.
  int64_t replace_paused_ms = 0;
  // How many are still to be named since there may be room.
  uint32_t replace_left = 0;
  uint32_t nodes_up = 0;
  // The first reservation comes due. 0: there is none.
  int64_t due_ms = 0;
  std::string lost_node;                                  // since the last answer; for people
  std::shared_ptr<const scheduling::Resources> capacity;  // of the pool; null: not known
  // A limit lets somebody go at this time, if nothing else happens. 0: none does by time alone.
  int64_t limits_due_ms = 0;
  std::shared_ptr<const Windows> windows;  // those that are not over; null: there are none
  std::string window_set;                  // that no answer has known yet; for people
  // Candidates of a cycle that was abandoned, of which any may be why: job ids. So many of them are
  // tried at a time, and nobody else. Null: there are none.
  std::shared_ptr<const std::vector<std::string>> suspects;
  uint32_t suspects_at_once = 0;
};

}  // namespace fluxqueue::queue_core
