// By whom a call of the queue's API is made, and until when.
#pragma once

#include <chrono>
#include <string>

#include "libs/rpc/caller.h"

namespace fluxqueue::queue {

struct Caller {
  rpc::Caller who = {};
  // Nobody has looked yet whose it is (`who` is nobody then). Never to be logged.
  std::string token = {};
  std::chrono::steady_clock::time_point deadline = {};
  // By another replica of the queue, which found the pool to be ours.
  bool handed_on = false;
  // That is so, by its certificate: it has judged the call.
  bool judged = false;
  std::string traceparent = {};  // of the call; empty: none
};

}  // namespace fluxqueue::queue
