// Jobs of mixed kinds, kept in flight: made as others end, and a few Deployments that are replaced
// in turn.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "libs/postgres/connection.h"
#include "libs/testing/mini_system.h"
#include "libs/testing/shell.h"
#include "tests/soak/plan.h"

namespace fluxqueue::chaos {

struct LoadOptions {
  uint64_t seed = 1;
  int in_flight = 24;  // Jobs, pods and gangs
  int at_once = 12;    // made with one command, each second
  double seconds_least = 0.5;
  double seconds_most = 3;  // that their pods run
};

// A workload of the load: it ends by itself.
struct Made {
  std::string name{};
  bool job = false;   // of the kind Job; else a pod, or
  bool gang = false;  // some pods in a group
  int pods = 1;
};

// Thread-safe, and not to be moved.
class Load {
 public:
  // `system` outlives this.
  Load(const testing::MiniSystem& system, const LoadOptions& options);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Those that were made and not seen to have ended, a moment ago.
  std::vector<Made> InFlight() const;
  // No more are made. Returns when the last one is there.
  void Stop();
  int made() const;

 private:
  void Run(const std::stop_token& stop);
  void MakeSome();
  soak::Action Next();
  void Create(const std::vector<soak::Action>& actions);
  void ReplaceDeployment();
  void ForgetEnded();
  void DeletePods();
  // Of a command of which some was refused, too, the output tells what was done.
  testing::ShellResult Kubectl(std::vector<std::string> words, const std::string& input = "") const;
  int Between(int least, int most);

  const LoadOptions options_;
  const std::string folder_;
  const std::unique_ptr<postgres::Connection> database_;  // the thread's only
  std::mt19937_64 random_;                                // the thread's only
  int turns_ = 0;                                         // the thread's only
  std::vector<std::string> deployments_;                  // the thread's only
  std::vector<std::string> doomed_;                       // the thread's only; pods to be deleted
  mutable std::mutex mutex_;
  int made_ = 0;                           // guarded by mutex_
  std::map<std::string, Made> in_flight_;  // guarded by mutex_
  std::jthread thread_;                    // last: it uses all of the above
};

}  // namespace fluxqueue::chaos
