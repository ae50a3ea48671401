// A way for tests to make commits fail, and whatever reads a message. Production passes none.
#pragma once

#include "libs/kafka/message.h"

namespace fluxqueue::delivery {

enum class CommitFault {
  kNone,
  kBefore,  // the connection dies before COMMIT is sent: nothing happened
  kAfter,   // COMMIT takes effect, and the connection dies before the answer
};

// What keeps effects exactly once. A simulation takes one out, and must then see something go
// wrong.
enum class Safety {
  kEpoch,       // a batch commits only while its rows are as memory has them
  kSequence,    // of a stream each sequence is taken once
  kSettle,      // what became of a commit whose outcome is unknown is read from the row
  kQuarantine,  // an object that cannot be handled is left out, and all others go on
};

class FaultInjector {
 public:
  virtual ~FaultInjector() = default;
  // Asked once for each commit, from the loop's thread.
  virtual CommitFault NextCommit() { return CommitFault::kNone; }
  virtual bool Lacks(Safety safety) const {
    static_cast<void>(safety);
    return false;
  }
  // Before the first byte of its value is looked at, on the loop's thread.
  virtual void Reading(const kafka::Message& message) { static_cast<void>(message); }
};

}  // namespace fluxqueue::delivery
