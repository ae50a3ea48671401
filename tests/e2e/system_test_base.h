// What the e2e tests share: one system for a suite, objects as texts, and the end of every test:
// the eight invariants and the replay.
#pragma once

#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/testing/mini_system.h"

namespace fluxqueue::e2e {

struct JobOptions {
  int parallelism = 1;
  int completions = 1;
  bool indexed = false;
  std::string cpu = "500m";
  std::string run_seconds = "0.2";
  std::string annotations{};  // of the Job: "{fluxqueue.io/hold: \"true\"}"
  std::string owners{"[]"};   // of the Job: "[{apiVersion: v1, …}]"
  std::string limits{};       // of the container: "{nvidia.com/gpu: 1}"
  std::string pod_spec{};     // more lines of the template's spec, indented by six
};

inline std::string JobYaml(const std::string& name, const JobOptions& options = {}) {
  return fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata:
  name: {}
  namespace: e2e
  annotations: {}
  ownerReferences: {}
spec:
  parallelism: {}
  completions: {}
  completionMode: {}
  backoffLimit: 0
  template:
    metadata:
      annotations: {{fluxqueue.io/run-seconds: "{}"}}
    spec:
{}      restartPolicy: Never
      containers:
        - name: main
          image: busybox
          resources: {{requests: {{cpu: "{}", memory: 64Mi}}, limits: {}}}
---
)",
                     name,
                     options.annotations.empty() ? "{}" : options.annotations,
                     options.owners,
                     options.parallelism,
                     options.completions,
                     options.indexed ? "Indexed" : "NonIndexed",
                     options.run_seconds,
                     options.pod_spec,
                     options.cpu,
                     options.limits.empty() ? "{}" : options.limits);
}

// A volume and a claim of it; what uses the claim is pinned.
inline constexpr const char* kClaimYaml = R"(apiVersion: v1
kind: PersistentVolume
metadata: {name: volume}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  hostPath: {path: /tmp}
  claimRef: {namespace: e2e, name: claim}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim, namespace: e2e}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: volume
  resources: {requests: {storage: 1Gi}}
---
)";

class SystemTest : public ::testing::Test {
 protected:
  static void StartSystem(const testing::MiniSystemOptions& options) {
    auto started = testing::MiniSystem::Start(options);
    ASSERT_TRUE(started.ok()) << Message(started.status());
    system_ = std::move(*started);
    const auto made = system_->Kubectl({"apply", "-f", "-"},
                                       "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: e2e\n"
                                       "  labels: {fluxqueue.io/managed: \"true\"}\n");
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }

  static void TearDownTestSuite() { system_.reset(); }

  void SetUp() override { ASSERT_NE(system_, nullptr) << "the system did not start"; }

  // Every test leaves a system that holds all its promises.
  void TearDown() override {
    if (system_ == nullptr) return;
    ExpectPromisesKept();
    if (HasFailure()) fmt::print("bundle: {}\n", system_->SaveBundle());
  }

  void ExpectPromisesKept() {
    const auto verified = system_->Fluxqueue({"verify", "--no-replay"});
    ASSERT_TRUE(verified.ok()) << Message(verified.status());
    EXPECT_EQ(verified->exit_code, 0) << verified->output;
    const auto replayed = system_->Fluxqueue({"replay", "--library", library_});
    ASSERT_TRUE(replayed.ok()) << Message(replayed.status());
    EXPECT_EQ(replayed->exit_code, 0) << replayed->output;
    fmt::print("{}", replayed->output);
  }

  // The log that the tests so far have written, played again by the simulator.
  void ExpectSimulatorAgrees() {
    const std::string log = system_->folder() + "/log.gz";
    const auto dumped = system_->Fluxqueue({"events", "dump", "default", log});
    ASSERT_TRUE(dumped.ok()) << Message(dumped.status());
    ASSERT_EQ(dumped->exit_code, 0) << dumped->output;
    const auto simulated = system_->Fluxqueue({"simulate", "--format", "events", "--jobs", log});
    ASSERT_TRUE(simulated.ok()) << Message(simulated.status());
    EXPECT_EQ(simulated->exit_code, 0) << simulated->output;
    EXPECT_THAT(simulated->output, ::testing::HasSubstr("as recorded"));
    fmt::print("{}", simulated->output);
  }

  void Apply(const std::string& yaml) {
    const auto applied = system_->Kubectl({"create", "-f", "-"}, yaml);
    ASSERT_TRUE(applied.ok()) << Message(applied.status());
  }

  // Makes it or changes it. `spec`: "{strategy: easy}", for all namespaces if it does not say for
  // whom.
  void MakeQueue(const std::string& name, std::string spec) {
    const bool says = spec.find("namespaceSelector:") != spec.npos ||
                      spec.find("members:") != spec.npos || spec.find("parent:") != spec.npos;
    if (!says) spec.insert(1, spec == "{}" ? "namespaceSelector: {}" : "namespaceSelector: {}, ");
    const auto made =
        system_->Kubectl({"apply", "-f", "-"},
                         fmt::format("apiVersion: fluxqueue.io/v1alpha1\nkind: FluxQueue\n"
                                     "metadata: {{name: {}}}\nspec: {}\n",
                                     name,
                                     spec));
    ASSERT_TRUE(made.ok()) << Message(made.status());
    const absl::Status known = system_->WaitFor(
        [&] { return Count(fmt::format("queue.queues WHERE queue = '{}'", name)) == 1; },
        std::chrono::seconds(30),
        [&] { return fmt::format("queue {} to be known", name); });
    ASSERT_TRUE(known.ok()) << Message(known);
  }

  // "Running", of the job of this name; "" when it is not known.
  std::string StateOf(const std::string& name) {
    const auto rows = system_->Query(
        fmt::format("SELECT state FROM queue.jobs WHERE name = '{}' ORDER BY created_ms DESC "
                    "LIMIT 1",
                    name));
    return rows.ok() && !rows->empty() ? (*rows)[0][0] : "";
  }

  // "" when there is none.
  std::string Field(const std::string& name, const std::string& field) {
    const auto value =
        system_->QueryOne(fmt::format("SELECT {} FROM queue.jobs WHERE name = '{}'", field, name));
    return value.ok() ? *value : "";
  }
  std::string MessageOf(const std::string& name) { return Field(name, "message"); }
  std::string ReasonOf(const std::string& name) { return Field(name, "reason"); }
  // Since the Unix epoch, of a job that is promised one or has started; else 0.
  int64_t StartOf(const std::string& name) {
    const std::string start = Field(name, "start_ms");
    return start.empty() ? 0 : std::stoll(start);
  }
  // How often it was preempted.
  int StopsOf(const std::string& name) {
    return Count(fmt::format(
        "queue.job_events e JOIN queue.jobs j ON j.job_id = e.job_id WHERE j.name = '{}' AND "
        "e.state = 'Stopping' AND e.reason = 'Preempted'",
        name));
  }

  void ExpectReason(const std::string& name, const std::string& reason) {
    const absl::Status reached =
        system_->WaitFor([&] { return ReasonOf(name) == reason; },
                         std::chrono::seconds(30),
                         [&] {
                           return fmt::format("job {} is {} {} ({}), not {}",
                                              name,
                                              StateOf(name),
                                              ReasonOf(name),
                                              MessageOf(name),
                                              reason);
                         });
    EXPECT_TRUE(reached.ok()) << Message(reached);
  }

  void ExpectState(const std::string& name,
                   const std::string& state,
                   std::chrono::seconds deadline = std::chrono::seconds(60)) {
    const absl::Status reached = system_->WaitFor(
        [&] { return StateOf(name) == state; },
        deadline,
        [&] {
          return fmt::format(
              "job {} is {} ({}), not {}", name, StateOf(name), MessageOf(name), state);
        });
    EXPECT_TRUE(reached.ok()) << Message(reached);
  }

  int Count(const std::string& what) {
    const auto count = system_->QueryOne("SELECT count(*) FROM " + what);
    EXPECT_TRUE(count.ok()) << Message(count.status());
    return count.ok() ? std::stoi(*count) : -1;
  }

  static inline std::unique_ptr<testing::MiniSystem> system_;
  // Fluxion's, or one with its interface, where a pool has that engine.
  static inline const std::string library_ =
      std::string(FLUXQUEUE_BINARY_DIR) + "/bin/libfluxqueue_reapi.so";
};

}  // namespace fluxqueue::e2e
