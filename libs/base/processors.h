// How busy the machine is, with all that runs on it: what a process may do early or late is better
// done late where others wait for the processors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace fluxqueue {

// Not thread-safe.
class ProcessorUse {
 public:
  // A file as Linux' /proc/stat (proc(5)).
  explicit ProcessorUse(std::string path = "/proc/stat") : path_(std::move(path)) {}

  // The share of the processors' time since the last call in which they were not idle: 0 to 1. The
  // first call answers for the time since the machine was started. 0 where the kernel does not say.
  double Busy();

 private:
  const std::string path_;
  uint64_t idle_ = 0;  // clock ticks, at the last call
  uint64_t all_ = 0;
  double busy_ = 0;
};

}  // namespace fluxqueue
