#include "services/graph/rpc/client_calls.h"

#include <mutex>
#include <unordered_map>
#include <utility>

#include "libs/access/rights.h"
#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::graph_service {
namespace {

absl::Status TooMany(std::string_view reason, std::string_view what, int64_t limit) {
  return rpc::WithReason(MakeStatus(absl::StatusCode::kResourceExhausted, "{}", what),
                         reason,
                         {{"limit", fmt::format("{}", limit)}});
}

}  // namespace

struct ClientCalls::UnderWay {
  struct Client {
    int calls = 0;
    int64_t bytes = 0;
  };

  explicit UnderWay(const CallLimits& of) : limits(of) {}

  const CallLimits limits;
  std::mutex mutex;
  std::unordered_map<std::string, Client> clients;  // guarded by mutex, as what follows
  int64_t bytes = 0;
};

ClientCalls::Place::Place(std::shared_ptr<UnderWay> under_way, std::string client)
    : under_way_(std::move(under_way)), client_(std::move(client)) {}

ClientCalls::Place::~Place() {
  const std::lock_guard lock(under_way_->mutex);
  const auto client = under_way_->clients.find(client_);
  client->second.bytes -= bytes_;
  under_way_->bytes -= bytes_;
  if (--client->second.calls == 0) under_way_->clients.erase(client);
}

absl::Status ClientCalls::Place::Hold(int64_t bytes) {
  const std::lock_guard lock(under_way_->mutex);
  const CallLimits& limits = under_way_->limits;
  UnderWay::Client& client = under_way_->clients.at(client_);
  const int64_t more = bytes - bytes_;
  if (more > 0 && client.bytes + more > limits.client_bytes) {
    return TooMany("CALL_BYTES",
                   fmt::format("the calls of {} would hold {} bytes, requests and answers that "
                               "wait to be read; {} are allowed: ask for less at once, or read "
                               "the answers first",
                               client_,
                               client.bytes + more,
                               limits.client_bytes),
                   limits.client_bytes);
  }
  if (more > 0 && under_way_->bytes + more > limits.bytes) {
    return TooMany("CALL_BYTES",
                   fmt::format("the calls of all clients would hold {} bytes, requests and answers "
                               "that wait to be read; {} are allowed: call again later",
                               under_way_->bytes + more,
                               limits.bytes),
                   limits.bytes);
  }
  client.bytes += more;
  under_way_->bytes += more;
  bytes_ = bytes;
  return absl::OkStatus();
}

ClientCalls::ClientCalls(const CallLimits& limits)
    : under_way_(std::make_shared<UnderWay>(limits)) {}

absl::StatusOr<std::shared_ptr<ClientCalls::Place>> ClientCalls::Enter(std::string_view user) {
  const std::string client(access::TenantOf(user));
  {
    const std::lock_guard lock(under_way_->mutex);
    const int most = under_way_->limits.client_calls;
    int& calls = under_way_->clients[client].calls;
    if (calls >= most) {
      return TooMany("CALL_LIMIT",
                     fmt::format("{} calls of {} are under way, streams too, and more are not "
                                 "allowed: wait until some have ended",
                                 calls,
                                 client),
                     most);
    }
    ++calls;
  }
  return std::make_shared<Place>(under_way_, client);
}

}  // namespace fluxqueue::graph_service
