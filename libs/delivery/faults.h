// A way for tests to make commits fail. Production passes none.
#pragma once

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
};

}  // namespace fluxqueue::delivery
