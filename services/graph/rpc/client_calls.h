// How many calls of each client (access::TenantOf the user) are under way, and what they hold in
// memory: requests, answers that wait to be read. More than a bound is refused, so that one client
// leaves room for others, and all together cannot fill the memory.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

struct CallLimits {
  // Of one client.
  int client_calls = 256;
  int64_t client_bytes = int64_t{128} << 20;
  // Of all together.
  int64_t bytes = int64_t{512} << 20;
};

class ClientCalls {
 public:
  struct UnderWay;

  // Of one call. It may outlive the ClientCalls.
  class Place {
   public:
    Place(std::shared_ptr<UnderWay> under_way, std::string client);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // So many bytes from now on, in place of what it held. ResourceExhausted, with the reason
    // CALL_BYTES: they are too many, and nothing has changed.
    absl::Status Hold(int64_t bytes);

   private:
    const std::shared_ptr<UnderWay> under_way_;
    const std::string client_;
    int64_t bytes_ = 0;  // guarded by the mutex of under_way_
  };

  explicit ClientCalls(const CallLimits& limits);

  // A place for a call, given back when the last copy of the pointer goes. ResourceExhausted, with
  // the reason CALL_LIMIT: they are all taken.
  absl::StatusOr<std::shared_ptr<Place>> Enter(std::string_view user);

 private:
  const std::shared_ptr<UnderWay> under_way_;
};

}  // namespace fluxqueue::graph_service
