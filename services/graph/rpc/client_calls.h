// How many calls of each client are under way: more than a bound are refused, so that one client
// leaves room for others.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

class ClientCalls {
 public:
  // `most` of each client.
  explicit ClientCalls(int most);

  // A place for a call, given back when the last copy of the pointer goes, which may outlive the
  // object. ResourceExhausted, with the reason CALL_LIMIT: they are all taken.
  absl::StatusOr<std::shared_ptr<void>> Enter(const std::string& client);

 private:
  struct UnderWay;

  const int most_;
  const std::shared_ptr<UnderWay> under_way_;
};

}  // namespace fluxqueue::graph_service
