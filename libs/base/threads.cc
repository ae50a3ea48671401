#include "libs/base/threads.h"

#include <mutex>
#include <thread>
#include <utility>

namespace fluxqueue {
namespace {

class RealThread final : public Thread {
 public:
  explicit RealThread(Threads::Body body)
      : thread_([body = std::move(body)](const std::stop_token& stop) { body(stop); }) {}
  ~RealThread() override { RealThread::Stop(); }

  void RequestStop() override { thread_.request_stop(); }
  void Stop() override {
    thread_.request_stop();
    const std::lock_guard lock(mutex_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::mutex mutex_;
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<Thread> RealThreads::Start(Body body) {
  return std::make_unique<RealThread>(std::move(body));
}

}  // namespace fluxqueue
