// A system with what it takes to strike at it: a way between services and each of Postgres and the
// API server (libs/testing/tcp_proxy.h), disks for Kafka and Postgres that can be full, for
// Postgres a standby to fail over to, and clocks that are wrong.
//
// One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libs/testing/mini_system.h"
#include "libs/testing/tcp_proxy.h"

#include "absl/status/status.h"

namespace fluxqueue::chaos {

class Site {
 public:
  // For MiniSystemOptions: Kafka and Postgres come onto disks of their own, where this process may
  // mount any; who else looks at the machine does not see them. The cluster's certificates are of
  // yesterday, so that they hold for a clock that is behind.
  static absl::Status Prepare(const std::string& folder);

  // `system` runs without services, with a Postgres that can be followed, and outlives this.
  explicit Site(testing::MiniSystem* system) : system_(system) {}
  // What runs keeps what it has of its disks.
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  // Starts the services.
  absl::Status Start(int replicas);

  testing::MiniSystem& system() { return *system_; }
  // REQUIRES: started.
  testing::TcpProxy& postgres_front() { return *postgres_front_; }
  testing::TcpProxy& api_front() { return *api_front_; }

  // Postgres dies, and a standby, which may lack the last commits, takes its place.
  absl::Status FailOver();
  // With the standby's data at its own place again.
  absl::Status FailBack();

  // "kafka" or "postgres".
  absl::Status FillDisk(const std::string& part);
  absl::Status EmptyDisk(const std::string& part);
  bool has_disks() const;

  // For LaunchService: the program's time of day is `shift` seconds ahead of ours.
  static std::vector<std::string> WordsForClock(int shift);
  absl::Status StartKafka(int shift);

 private:
  absl::StatusOr<int> PortOf(const std::string& file) const;
  std::string Path(const std::string& name) const { return system_->folder() + "/" + name; }

  testing::MiniSystem* const system_;
  int postgres_port_ = 0;
  std::unique_ptr<testing::TcpProxy> postgres_front_;
  std::unique_ptr<testing::TcpProxy> api_front_;
};

}  // namespace fluxqueue::chaos
