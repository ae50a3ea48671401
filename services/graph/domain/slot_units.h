// How a graph names and counts what a pod needs: in what a PodSpec of the ancestors is said to it.
#pragma once

#include <cstdint>
#include <string>

namespace fluxqueue::graph_service {

struct SlotUnits {
  std::string cpu = "core";
  int64_t per_core = 1;
  std::string memory = "memory";
  int64_t memory_bytes = int64_t{1} << 20;  // one of its unit
  std::string gpu = "gpu";
  std::string storage = "storage";
  int64_t storage_bytes = int64_t{1} << 20;
};

// Bytes of a unit: B, KB, MB, GB, TB, PB, with or without an i. All are powers of 1024, and none is
// MB: so the ancestors count. 0 for a unit that is not known.
int64_t BytesOfUnit(const std::string& unit);

}  // namespace fluxqueue::graph_service
