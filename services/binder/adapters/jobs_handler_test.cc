#include "services/binder/adapters/jobs_handler.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/testing_scripted_api.h"
#include "libs/metrics/metrics.h"
#include "services/binder/adapters/pod_feed.h"

namespace fluxqueue::binder {
namespace {

using kubernetes::scripted::CrowdedApi;
using ::testing::HasSubstr;

class IdleHandlerTest : public ::testing::Test {
 protected:
  // More than this never waits: the limit, and the one item that has passed it.
  static constexpr size_t kMostBytes = kMostInboxBytes + 2 * CrowdedApi::kPodBytes;

  bool Eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(Millis(5));
    }
    return true;
  }

  CrowdedApi api_;
  kubernetes::Client client_{api_.config()};
  metrics::Registry registry_;
  BinderMetrics metrics_{registry_};
  RealClock clock_;
  tracing::Tracer tracer_{{}, registry_};
  delivery::Quarantine quarantine_{clock_, {"Pod"}};
  Inbox inbox_{"cluster", kMostInboxBytes};
  PodFeed feed_{client_, inbox_, metrics_};
  PodTeller teller_{client_};
  JobsHandler handler_{{.plan = {},
                        .proofs = [](const PodFacts&) { return false; },
                        .inbox = inbox_,
                        .quarantine = quarantine_,
                        .tell = [](const delivery::QuarantineRow&) {},
                        .pods_in_view = [this] { return feed_.Ready().ok(); },
                        .pods = teller_,
                        .lack = [](const std::vector<events::v1::JobFact>&) {},
                        .submit = [](const std::vector<Call>&) {},
                        .metrics = metrics_,
                        .clock = clock_,
                        .tracer = tracer_}};
};

// 100,000 pods are more than the inbox holds.
TEST_F(IdleHandlerTest, WithoutPartitionsItIsReadyAndItsInboxStaysBounded) {
  ASSERT_TRUE(feed_.Start().ok());
  // While the loop does not even turn, the watch waits.
  ASSERT_TRUE(Eventually([&] { return inbox_.times_full() > 0; }));
  EXPECT_FALSE(feed_.Ready().ok());
  EXPECT_LE(inbox_.bytes(), kMostBytes);

  bool ready = false;
  size_t most = 0;
  ASSERT_TRUE(Eventually([&] {
    most = std::max(most, inbox_.bytes());
    ready = ready || feed_.Ready().ok();
    const absl::Status idle = handler_.Idle();
    EXPECT_TRUE(idle.ok()) << idle;
    return ready && api_.told_all() && inbox_.empty();
  }));
  EXPECT_LE(most, kMostBytes);
  EXPECT_THAT(registry_.Text(), HasSubstr("fluxqueue_binder_pods 100000\n"));
}

}  // namespace
}  // namespace fluxqueue::binder
