// Services that start before what they need. What dies in the middle of its work: tests/chaos.
#include <array>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

constexpr int kJobs = 60;
constexpr std::array kServices = {"queue", "matcher", "binder", "cleanup", "admission"};

class FaultsTest : public SystemTest {
 protected:
  static void SetUpTestSuite() { StartSystem({.nodes = 10}); }

  void ApplyJobs(const std::string& prefix) {
    std::string yaml;
    for (int i = 0; i < kJobs; ++i) yaml += JobYaml(fmt::format("{}-{}", prefix, i));
    Apply(yaml);
  }

  int Ended(const std::string& prefix) {
    return Count(fmt::format("queue.jobs WHERE name LIKE '{}-%' AND state = 'Succeeded'", prefix));
  }

  void WaitForEnded(const std::string& prefix, int jobs, std::chrono::seconds deadline) {
    const absl::Status ended = system_->WaitFor(
        [&] { return Ended(prefix) >= jobs; },
        deadline,
        [&] {
          std::string states;
          const auto rows = system_->Query(fmt::format(
              "SELECT state, count(*), min(name) FROM queue.jobs WHERE name LIKE '{}-%' "
              "GROUP BY 1",
              prefix));
          if (rows.ok()) {
            for (const auto& row : *rows) {
              states += fmt::format("{} {} (such as {}); ", row[1], row[0], row[2]);
            }
          }
          return states;
        });
    ASSERT_TRUE(ended.ok()) << Message(ended);
  }

  // The service stays up, and says what it waits for.
  void ExpectUnready(const std::string& service, const std::string& part) {
    absl::StatusOr<std::string> said;
    const absl::Status named = system_->WaitFor(
        [&] {
          said = system_->Readiness(service);
          return said.ok() && said->find(part) != std::string::npos;
        },
        std::chrono::seconds(30),
        [&] { return said.ok() ? *said : Message(said.status()); });
    EXPECT_TRUE(named.ok()) << service << " does not name " << part << ": " << Message(named);
  }

  // One terminal fact each, versions 1, 2, 3 …, and one pod each: nothing ran twice.
  void ExpectEndedOnce(const std::string& prefix) {
    EXPECT_EQ(Ended(prefix), kJobs);
    EXPECT_EQ(Count(fmt::format("(SELECT e.job_id FROM queue.job_events e JOIN queue.jobs j "
                                "USING (job_id) WHERE j.name LIKE '{}-%' AND e.state IN "
                                "('Succeeded', 'Failed', 'Cancelled', 'Rejected') "
                                "GROUP BY e.job_id HAVING count(*) = 1) once",
                                prefix)),
              kJobs);
    EXPECT_EQ(Count(fmt::format("(SELECT e.job_id FROM queue.job_events e JOIN queue.jobs j "
                                "USING (job_id) WHERE j.name LIKE '{}-%' GROUP BY e.job_id "
                                "HAVING max(e.version) <> count(*)) gaps",
                                prefix)),
              0);
    const auto pods = system_->Kubectl(
        {"get", "pods", "-n", "e2e", "--no-headers", "-o", "custom-columns=NAME:.metadata.name"});
    ASSERT_TRUE(pods.ok()) << Message(pods.status());
    int of_prefix = 0;
    for (size_t at = 0; (at = pods->find("\n" + prefix + "-", at)) != std::string::npos; ++at) {
      ++of_prefix;
    }
    if (pods->starts_with(prefix + "-")) ++of_prefix;
    EXPECT_EQ(of_prefix, kJobs);
  }
};

// Whatever is started first: each service waits, says for what, and works once it is there.
TEST_F(FaultsTest, ServicesStartBeforeAllThatTheyNeed) {
  ApplyJobs("early");
  WaitForEnded("early", 20, std::chrono::seconds(120));
  for (const char* service : kServices) ASSERT_TRUE(system_->KillService(service).ok());
  for (const char* part : {"cluster", "kafka", "postgres"}) {
    ASSERT_TRUE(system_->StopPart(part).ok());
  }
  for (const char* service : kServices) {
    const absl::Status launched = system_->LaunchService(service);
    ASSERT_TRUE(launched.ok()) << Message(launched);
  }
  for (const char* service : kServices) ExpectUnready(service, "Postgres");
  ASSERT_TRUE(system_->StartPart("postgres").ok());
  for (const char* service : {"queue", "matcher", "binder"}) ExpectUnready(service, "Kafka");
  ASSERT_TRUE(system_->StartPart("kafka").ok());
  for (const char* service : {"admission", "binder", "cleanup"}) {
    ExpectUnready(service, "Kubernetes");
  }
  ASSERT_TRUE(system_->StartPart("cluster").ok());
  for (const char* service : kServices) {
    const absl::Status ready = system_->StartService(service);
    ASSERT_TRUE(ready.ok()) << Message(ready);
  }
  WaitForEnded("early", kJobs, std::chrono::seconds(180));
  ExpectEndedOnce("early");
}

// Without a job to be written, nothing else tells the queue that the database is there again.
TEST_F(FaultsTest, AnIdleQueueIsReadyOnceItsDatabaseIsThere) {
  ASSERT_TRUE(system_->KillService("queue").ok());
  ASSERT_TRUE(system_->StopPart("postgres").ok());
  ASSERT_TRUE(system_->LaunchService("queue").ok());
  ExpectUnready("queue", "Postgres");
  ASSERT_TRUE(system_->StartPart("postgres").ok());
  const absl::Status ready = system_->StartService("queue");
  ASSERT_TRUE(ready.ok()) << Message(ready);
}

}  // namespace
}  // namespace fluxqueue::e2e
