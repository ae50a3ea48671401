// Follows log.level in the configuration file while the service runs. Whoever may write the file,
// in a cluster the ConfigMap that it is mounted from, may change the level; no port is open for it.
// Nothing else of the file is taken over.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "libs/base/log.h"

namespace fluxqueue::lifecycle {

class LogLevelWatch {
 public:
  // `level`: what the log has now.
  LogLevelWatch(std::string path, std::string service, LogLevel level);

 private:
  void Run(const std::stop_token& stop, LogLevel level);

  const std::string path_;
  const std::string service_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace fluxqueue::lifecycle
