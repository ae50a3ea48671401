// What the matcher answers of a job whose jobspec it has not got. By this sentence the queue knows
// that nothing is wrong with the job: the log has lost what brought its jobspec.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace fluxqueue::model {

inline std::string NoJobspec(uint32_t part) {
  return fmt::format("the matcher has no jobspec of part {}", part);
}

}  // namespace fluxqueue::model
