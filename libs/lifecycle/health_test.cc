#include "libs/lifecycle/health.h"

#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::lifecycle {
namespace {

class FakeComponent final : public Component {
 public:
  FakeComponent(std::string name, absl::Status ready)
      : name_(std::move(name)), ready_(std::move(ready)) {}
  const std::string& name() const override { return name_; }
  absl::Status Start() override { return absl::OkStatus(); }
  void Stop() override {}
  absl::Status Ready() const override { return ready_; }
  absl::Status Alive() const override { return alive_; }
  void SetReady(absl::Status ready) { ready_ = std::move(ready); }
  void SetAlive(absl::Status alive) { alive_ = std::move(alive); }

 private:
  std::string name_;
  absl::Status ready_;
  absl::Status alive_;
};

TEST(HealthTest, IsNotReadyBeforeAndAfterServing) {
  Health health;
  EXPECT_FALSE(health.Ready().ok);
  EXPECT_EQ(health.Ready().text, "starting\n");
  health.Serving({});
  EXPECT_TRUE(health.Ready().ok);
  health.Stopping();
  EXPECT_FALSE(health.Ready().ok);
  EXPECT_EQ(health.Ready().text, "stopping\n");
}

TEST(HealthTest, NamesEachComponentThatWaits) {
  FakeComponent log("pool log", Unavailable("connect to 127.0.0.1:9092: refused"));
  FakeComponent watch("node watch", absl::OkStatus());
  FakeComponent database("database", Unavailable("no route to db"));
  Health health;
  health.Serving({&log, &watch, &database});
  EXPECT_FALSE(health.Ready().ok);
  EXPECT_EQ(health.Ready().text,
            "pool log: connect to 127.0.0.1:9092: refused\n"
            "database: no route to db\n");
  log.SetReady(absl::OkStatus());
  database.SetReady(absl::OkStatus());
  EXPECT_TRUE(health.Ready().ok);
  EXPECT_EQ(health.Ready().text, "ok\n");
}

TEST(HealthTest, WhoWaitsIsAliveAndWhoHangsIsNot) {
  FakeComponent log("pool log", Unavailable("connect to 127.0.0.1:9092: refused"));
  FakeComponent watch("node watch", absl::OkStatus());
  Health health;
  EXPECT_TRUE(health.Live().ok) << "while it starts";
  health.Serving({&log, &watch});
  EXPECT_FALSE(health.Ready().ok);
  EXPECT_TRUE(health.Live().ok);
  EXPECT_EQ(health.Live().text, "ok\n");
  log.SetAlive(Unavailable("has not got on for 312 s: it hangs"));
  EXPECT_FALSE(health.Live().ok);
  EXPECT_EQ(health.Live().text, "pool log: has not got on for 312 s: it hangs\n");
  health.Stopping();
  EXPECT_TRUE(health.Live().ok) << "stopping has a deadline of its own";
}

}  // namespace
}  // namespace fluxqueue::lifecycle
