// A part of a service that is started and stopped: a loop, a watch, a server.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace fluxqueue::lifecycle {

class Component {
 public:
  virtual ~Component() = default;

  // For logs and /readyz: "jobs loop", "node watch".
  virtual const std::string& name() const = 0;

  // Begins, and returns without waiting for other machines: a database, broker or API server that
  // is away makes a component not ready; it does not make Start fail. An error is one that waiting
  // cannot mend (port in use, unreadable certificate): the process stops with it.
  virtual absl::Status Start() = 0;

  // Returns when nothing of it runs any more. Called once for each Start that succeeded, in reverse
  // order; must be safe to call twice.
  virtual void Stop() = 0;

  // OK when it can do its work, else what it waits for. Thread-safe; quick: no calls to elsewhere.
  virtual absl::Status Ready() const = 0;

  // Not OK: it hangs, in what only a new process mends; the reason. What is away and may come back
  // makes it not ready, no more. Thread-safe; quick, and waits for no lock that its work may hold.
  virtual absl::Status Alive() const { return absl::OkStatus(); }
};

// Where a component that cannot go on says so. Thread-safe; returns at once, does not throw. The
// first failure stops the process: every component is stopped in order, its message is the last
// line of the log, the exit code is 1.
class FailureSink {
 public:
  virtual ~FailureSink() = default;
  virtual void Fail(const std::string& component, const absl::Status& status) = 0;
};

}  // namespace fluxqueue::lifecycle
