// SIGTERM and SIGINT, received on a thread of its own: the first asks to stop, the second ends the
// process at once with exit code 1.
//
// Made before any other thread: it blocks both signals in the calling thread, and threads inherit
// that. SIGPIPE is ignored from then on: a peer that has gone is an error of that write.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace fluxqueue::lifecycle {

class SignalWatch {
 public:
  // `on_first` gets the signal's name, on the watch's thread.
  explicit SignalWatch(std::function<void(const std::string&)> on_first);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  void Run();

  std::function<void(const std::string&)> on_first_;
  int signal_fd_ = -1;
  int stop_fd_ = -1;
  std::jthread thread_;
};

}  // namespace fluxqueue::lifecycle
