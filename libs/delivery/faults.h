// A way for tests to make commits fail, and whatever reads a message. Production passes none.
#pragma once

#include "libs/kafka/message.h"

namespace fluxqueue::delivery {

enum class CommitFault {
  kNone,
  kBefore,  // the connection dies before COMMIT is sent: nothing happened
  kAfter,   // COMMIT takes effect, and the connection dies before the answer
};

class FaultInjector {
 public:
  virtual ~FaultInjector() = default;
  // Asked once for each commit, from the loop's thread.
  virtual CommitFault NextCommit() = 0;
  // Before the first byte of its value is looked at, on the loop's thread.
  virtual void Reading(const kafka::Message& message) { static_cast<void>(message); }
};

}  // namespace fluxqueue::delivery
