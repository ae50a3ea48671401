// Tasks of many clients, each client's in the order in which they came, the clients in turn: who
// has given a thousand is served as often as who has given one. So that whoever comes finds a
// thread, a client has at most so many under way at once; tasks of nobody ("") have no such bound.
//
// Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

namespace fluxqueue::rpc {

class FairQueue {
 public:
  using Task = std::function<void()>;

  struct Taken {
    std::string client;
    Task task;
  };

  // `most_begun`: of one client, under way at once; at least 1.
  explicit FairQueue(int most_begun) : most_begun_(most_begun) {}

  void Push(const std::string& client, Task task);
  // The next one, which is under way from now on; nothing: there is none that may begin.
  std::optional<Taken> Take();
  // One that this client's Take gave is over.
  void Ended(const std::string& client);

  // That wait.
  size_t size() const { return size_; }

 private:
  struct Client {
    std::deque<Task> waiting;
    int begun = 0;
  };

  const int most_begun_;
  std::unordered_map<std::string, Client> clients_;  // that have any
  std::deque<std::string> turns_;                    // those with tasks that wait, the next first
  size_t size_ = 0;
};

}  // namespace fluxqueue::rpc
