#include "services/graph/rpc/client_calls.h"

#include <mutex>
#include <unordered_map>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::graph_service {

struct ClientCalls::UnderWay {
  std::mutex mutex;
  std::unordered_map<std::string, int> calls;  // by client; guarded by mutex
};

ClientCalls::ClientCalls(int most) : most_(most), under_way_(std::make_shared<UnderWay>()) {}

absl::StatusOr<std::shared_ptr<void>> ClientCalls::Enter(const std::string& client) {
  {
    const std::lock_guard lock(under_way_->mutex);
    int& calls = under_way_->calls[client];
    if (calls >= most_) {
      return rpc::WithReason(
          MakeStatus(absl::StatusCode::kResourceExhausted,
                     "{} calls of {} are under way, streams too, and more are not allowed: wait "
                     "until some have ended",
                     calls,
                     client),
          "CALL_LIMIT",
          {{"limit", fmt::format("{}", most_)}});
    }
    ++calls;
  }
  return std::shared_ptr<void>(nullptr, [under_way = under_way_, client](void*) {
    const std::lock_guard lock(under_way->mutex);
    const auto calls = under_way->calls.find(client);
    if (--calls->second == 0) under_way->calls.erase(calls);
  });
}

}  // namespace fluxqueue::graph_service
