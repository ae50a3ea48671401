#include "libs/rpc/fair_queue.h"

#include <algorithm>
#include <utility>

namespace fluxqueue::rpc {

void FairQueue::Push(const std::string& client, Task task) {
  Client& of = clients_[client];
  if (of.waiting.empty()) turns_.push_back(client);
  of.waiting.push_back(std::move(task));
  ++size_;
}

std::optional<FairQueue::Taken> FairQueue::Take() {
  const auto turn = std::find_if(turns_.begin(), turns_.end(), [this](const std::string& client) {
    return client.empty() || clients_.at(client).begun < most_begun_;
  });
  if (turn == turns_.end()) return std::nullopt;
  Taken taken{std::move(*turn), nullptr};
  turns_.erase(turn);
  Client& of = clients_.at(taken.client);
  taken.task = std::move(of.waiting.front());
  of.waiting.pop_front();
  if (!of.waiting.empty()) turns_.push_back(taken.client);
  ++of.begun;
  --size_;
  return taken;
}

void FairQueue::Ended(const std::string& client) {
  const auto of = clients_.find(client);
  if (--of->second.begun == 0 && of->second.waiting.empty()) clients_.erase(of);
}

}  // namespace fluxqueue::rpc
