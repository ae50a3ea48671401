// Three brokers, and one after the other dies, and its disk with it: jobs go on by the other two,
// and nothing that was acknowledged is lost.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <absl/strings/str_join.h>
#include <signal.h>

#include "libs/base/status_macros.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/topics.h"
#include "tests/chaos/checks.h"
#include "tests/chaos/load.h"
#include "tests/chaos/sightings.h"
#include "tests/e2e/system_test_base.h"
#include "tests/soak/commands.h"
#include "tests/soak/hands.h"

namespace fluxqueue::chaos {
namespace {

using std::chrono::seconds;

constexpr int kBrokers = 3;

class BrokersTest : public e2e::SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 0, .arguments = {"--brokers", fmt::format("{}", kBrokers)}});
  }

  static std::string FolderOf(int broker) {
    return broker == 1 ? "kafka" : fmt::format("kafka/broker-{}", broker);
  }

  void LoseBroker(int broker) {
    const absl::Status ended = system_->End(FolderOf(broker) + "/kafka", SIGKILL);
    ASSERT_TRUE(ended.ok()) << Message(ended);
    std::filesystem::remove_all(system_->folder() + "/" + FolderOf(broker) + "/data");
  }

  // The fewest of a partition, over all topics.
  int InSync() {
    std::vector<std::string> topics = {"__consumer_offsets"};
    for (const kafka::TopicSpec& spec : kafka::TopicSpecs({})) topics.push_back(spec.name);
    int fewest = kBrokers;
    for (const std::string& topic : topics) {
      const auto state = admin_->Describe(topic);
      fewest = std::min(fewest, state.ok() ? state->in_sync.value_or(0) : 0);
    }
    return fewest;
  }

  void WaitForInSync(int replicas) {
    const absl::Status in_sync = system_->WaitFor(
        [&] { return InSync() == replicas; },
        seconds(60),
        [&] { return fmt::format("{} replicas in sync; there are {}", replicas, InSync()); });
    ASSERT_TRUE(in_sync.ok()) << Message(in_sync);
  }

  void ExpectOthersBound(const std::vector<Made>& but) {
    const absl::Status bound =
        system_->WaitFor([&] { return checks_->IsAnyBound(load_->InFlight(), but); },
                         kRejoin,
                         [] { return "a job to be bound that has come since"; });
    EXPECT_TRUE(bound.ok()) << Message(bound);
  }

  absl::StatusOr<std::unique_ptr<kafka::Admin>> MakeAdmin() {
    std::string bootstrap;
    std::ifstream(system_->folder() + "/kafka/bootstrap") >> bootstrap;
    return kafka::Admin::Create(bootstrap);
  }

  // As a service does that starts: what is transient is tried again.
  absl::Status MakeTogether(const std::vector<kafka::TopicSpec>& specs) {
    ASSIGN_OR_RETURN(const auto admin, MakeAdmin());
    for (const kafka::TopicSpec& spec : specs) {
      absl::Status made = admin->EnsureTopics({spec}).status();
      for (int tries = 1; IsTransient(made) && tries < 100; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        made = admin->EnsureTopics({spec}).status();
      }
      RETURN_IF_ERROR(made);
    }
    return absl::OkStatus();
  }

  void Begin() {
    auto admin = MakeAdmin();
    ASSERT_TRUE(admin.ok()) << Message(admin.status());
    admin_ = std::move(*admin);
    const absl::Status prepared = soak::Hands(system_.get()).Prepare();
    ASSERT_TRUE(prepared.ok()) << Message(prepared);
    sightings_ = std::make_unique<Sightings>(system_->folder() + "/kubeconfig",
                                             std::string(soak::kNamespace));
    checks_ = std::make_unique<Checks>(system_.get(), sightings_.get());
    load_ = std::make_unique<Load>(*system_, LoadOptions{});
    ExpectOthersBound({});
  }

  void Expect(const Complaints& complaints) {
    EXPECT_TRUE(complaints.empty()) << absl::StrJoin(complaints, "\n");
  }

  std::unique_ptr<kafka::Admin> admin_;
  std::unique_ptr<Sightings> sightings_;
  std::unique_ptr<Checks> checks_;
  std::unique_ptr<Load> load_;
};

// Another broker is asked each time, and some learn of a topic later than others.
TEST_F(BrokersTest, ServicesThatStartTogetherMakeTheTopics) {
  constexpr int kServices = 12;
  constexpr int kTopics = 30;
  std::vector<kafka::TopicSpec> specs;
  for (int i = 0; i < kTopics; ++i) {
    specs.push_back({.name = fmt::format("made-together-{}", i), .partitions = 1, .config = {}});
  }
  std::vector<absl::Status> outcomes(kServices);
  {
    std::vector<std::jthread> services;
    for (absl::Status& outcome : outcomes) {
      services.emplace_back([&] { outcome = MakeTogether(specs); });
    }
  }
  for (const absl::Status& outcome : outcomes) EXPECT_TRUE(outcome.ok()) << Message(outcome);
}

// That the log is whole, the replay at the end of the test says.
TEST_F(BrokersTest, ABrokerThatIsLostWithItsDiskLosesNoMessage) {
  Begin();
  if (HasFatalFailure()) return;
  std::map<std::string, Made> struck;
  for (const int broker : {3, 2, 1}) {
    WaitForInSync(kBrokers);
    for (const Made& job : load_->InFlight()) struck[job.name] = job;
    LoseBroker(broker);
    if (HasFatalFailure()) return;
    WaitForInSync(kBrokers - 1);
    ExpectOthersBound(load_->InFlight());
    const auto doctor = system_->Fluxqueue({"doctor"});
    ASSERT_TRUE(doctor.ok()) << Message(doctor.status());
    EXPECT_THAT(doctor->output, ::testing::HasSubstr("2 of 3 replicas in sync"));
    const absl::Status back = system_->StartPart("kafka");
    ASSERT_TRUE(back.ok()) << Message(back);
    fmt::print(
        "broker {} was lost and is back, {} jobs were in flight so far\n", broker, struck.size());
  }
  WaitForInSync(kBrokers);
  load_->Stop();
  std::vector<Made> jobs;
  for (const auto& [name, job] : struck) jobs.push_back(job);
  const absl::Status ended = checks_->AwaitEnds(jobs, seconds(120));
  EXPECT_TRUE(ended.ok()) << Message(ended);
  Expect(checks_->EndedOnce(jobs));
  Expect(checks_->NothingKept(jobs, seconds(0)));
  for (const Made& job : jobs) {
    if (job.job) Expect(checks_->RanOnce(job));
  }
}

}  // namespace
}  // namespace fluxqueue::chaos
