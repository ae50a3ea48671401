// The end of a soak: the cluster made whole, what serves deleted, and what has to be true then.
//
// One thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/soak/hands.h"

#include "absl/status/status.h"

namespace fluxqueue::soak {

class Settling {
 public:
  // Both outlive this.
  Settling(testing::MiniSystem* system, Hands* hands) : system_(system), hands_(hands) {}

  // Nodes are whole, nothing serves, nothing is held.
  absl::Status MakeWhole();
  // Every job has ended.
  absl::Status WaitForEnds(std::chrono::seconds deadline);
  // Nothing is left that could be a job.
  absl::Status DeleteAll();

  // What is not as it must be, a line each. Each is given the time that it takes.
  std::vector<std::string> Ended();
  std::vector<std::string> Gone();
  std::vector<std::string> Services() const;

  // "12 Succeeded, 3 Pending": of the queue's jobs.
  std::string States();

 private:
  absl::StatusOr<std::string> InNamespace(std::vector<std::string> words);
  // kubectl to many objects, of which some may go meanwhile: again, until it goes through.
  absl::Status ToAll(const std::vector<std::string>& words);
  void ExpectNone(const std::string& rows, std::vector<std::string>* complaints);
  void ExpectNoObject(const std::string& kind, std::vector<std::string>* complaints);
  void ExpectFluxJobsEnded(std::vector<std::string>* complaints);
  void ExpectNodesFree(std::vector<std::string>* complaints);

  testing::MiniSystem* const system_;
  Hands* const hands_;
};

}  // namespace fluxqueue::soak
