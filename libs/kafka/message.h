// Records as this library takes and gives them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"

namespace fluxqueue::kafka {

using Headers = std::vector<std::pair<std::string, std::string>>;

// A record that was read.
// What librdkafka knows a record by is copied out: a Message may be kept for as long as one likes.
struct Message {
  int partition = 0;
  int64_t offset = 0;
  Millis append_time{0};  // the broker's LogAppendTime
  std::string key;
  std::string value;
  Headers headers;
};

}  // namespace fluxqueue::kafka
