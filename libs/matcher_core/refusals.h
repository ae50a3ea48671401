// What a cycle has refused. What had no room is not tried again in it for the same shape, by the
// same closed nodes (ClosedNodes::RefusedAs), and as long a time: meanwhile room goes, and none
// comes.
//
// Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::matcher_core {

class Refusals {
 public:
  struct Refusal {
    events::v1::Outcome::Kind kind = events::v1::Outcome::KIND_BUSY;
    std::string reason;
    uint32_t slots_now = 0;
    int64_t shortest_s = 0;  // asked for; what is as long or longer is refused too
  };

  // Null: nothing like it was refused for as long a time.
  const Refusal* Find(const std::string& as, int64_t duration_s) const;
  // The one of the shape, and whether it is new. The reference is valid until the next.
  std::pair<Refusal&, bool> Of(std::string as);

  // Of what runs: there is no room for another slot, `as` is the shape of one, for that long.
  void NoMore(const std::string& as, int64_t left_s) { no_more_[as] = left_s; }
  // It was refused, or there is no more of it, for as long a time.
  bool Has(const std::string& as, int64_t duration_s) const;

 private:
  std::unordered_map<std::string, Refusal> refusals_;
  std::unordered_map<std::string, int64_t> no_more_;
};

}  // namespace fluxqueue::matcher_core
