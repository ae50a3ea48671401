// The real program against a real API server (with kwok's nodes and kube-scheduler), Kafka and
// Postgres. The test plays the queue (facts on the jobs topic) and the matcher (rows of
// matcher.allocations).
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/envelope.h"
#include "libs/kafka/producer.h"
#include "libs/kafka/reader.h"
#include "libs/kafka/topics.h"
#include "libs/postgres/connection.h"
#include "libs/testing/mini_cluster.h"
#include "libs/testing/mini_kafka.h"
#include "libs/testing/mini_postgres.h"

namespace fluxqueue::binder {
namespace {

using events::v1::Envelope;
using events::v1::JobFact;
using ::testing::ElementsAre;

constexpr Millis kDeadline{60'000};
constexpr int kPoolPartition = 3;

// What all tests share: started once, gone with the program.
struct World {
  testing::MiniKafka kafka;
  testing::MiniPostgres postgres;
  std::unique_ptr<testing::MiniCluster> cluster;
  std::string folder;
};
World* world = nullptr;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void ApplySchema(pqxx::transaction_base& tx, const std::string& service) {
  tx.exec(fmt::format("CREATE SCHEMA {0}; SET LOCAL search_path TO {0}", service));
  std::set<std::string> files;
  const std::string folder =
      fmt::format("{}/services/{}/migrations", FLUXQUEUE_SOURCE_DIR, service);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path());
  for (const std::string& file : files) tx.exec(ReadText(file));
}

bool Eventually(const std::function<bool()>& condition, Millis deadline = kDeadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(Millis(50));
  }
  return true;
}

std::string Kubectl(const std::vector<std::string>& arguments, const std::string& input = "") {
  absl::StatusOr<std::string> output = world->cluster->Kubectl(arguments, input);
  return output.ok() ? *output : "error: " + Message(output.status());
}

// The program under test.
class BinderProcess {
 public:
  explicit BinderProcess(const std::string& instance) : instance_(instance) { Start(); }
  ~BinderProcess() { End(SIGTERM); }

  void Start() {
    const std::string config = world->folder + "/" + instance_ + ".yaml";
    const std::string proof_key = world->folder + "/proof.key";
    std::ofstream(proof_key) << std::string(32, 'k');
    std::ofstream(config) << fmt::format(
        "instance: {}\nhttp: {{address: 127.0.0.1, port: 0}}\npostgres: {{dsn: \"{}\"}}\n"
        "kafka: {{bootstrap: \"{}\", session_timeout: 1s}}\nkubernetes: {{kubeconfig: \"{}\"}}\n"
        "binder: {{proof_key: \"{}\"}}\n",
        instance_,
        world->postgres.dsn(),
        world->kafka.bootstrap(),
        world->cluster->kubeconfig(),
        proof_key);
    pid_ = fork();
    CHECK(pid_ >= 0, "fork");
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = open(
        (world->folder + "/" + instance_ + ".log").c_str(), O_CREAT | O_APPEND | O_WRONLY, 0644);
    dup2(log, STDERR_FILENO);
    execl(FLUXQUEUE_BINARY_DIR "/bin/fluxqueue-binder",
          "fluxqueue-binder",
          "--config",
          config.c_str(),
          nullptr);
    _exit(127);
  }
  // The exit code; -1 when a signal ended it.
  int End(int signal) {
    if (pid_ == 0) return 0;
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Log() const { return ReadText(world->folder + "/" + instance_ + ".log"); }

 private:
  const std::string instance_;
  pid_t pid_ = 0;
};

// The queue's and the matcher's part.
class Others {
 public:
  Others() : db_({.dsn = world->postgres.dsn(), .application = "test", .schema = "public"}) {
    auto producer = kafka::Producer::Create(world->kafka.bootstrap(), "test", [](uint64_t) {});
    CHECK(producer.ok(), "{}", producer.status().ToString());
    producer_ = *std::move(producer);
  }

  void Place(const std::string& job_id, uint32_t attempt, const std::vector<std::string>& nodes) {
    events::v1::Placement placement;
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto* slot = placement.add_slots();
      slot->set_slot(static_cast<uint32_t>(i));
      slot->set_node(nodes[i]);
    }
    auto* group = placement.add_groups();
    group->set_slots(static_cast<uint32_t>(nodes.size()));
    auto* cpu = group->add_requests();
    cpu->set_resource("cpu");
    cpu->set_amount(100);
    auto* pods = group->add_requests();
    pods->set_resource("pods");
    pods->set_amount(1);
    const std::string bytes = placement.SerializeAsString();
    const absl::Status status = db_.Transact([&](pqxx::transaction_base& tx) {
      tx.exec_params(
          "INSERT INTO matcher.allocations (job_id, attempt, part, pool, placement, "
          "placement_hash) "
          "VALUES ($1, $2, 0, 'default', $3, 1)",
          job_id,
          attempt,
          pqxx::binarystring(bytes));
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}", status.ToString());
  }

  // Versions and sequences rise by themselves.
  void Say(JobFact fact, events::v1::JobState state, uint32_t attempt = 1) {
    fact.set_state(state);
    fact.set_attempt(attempt);
    fact.set_version(++versions_[fact.job_id()]);
    const int partition = kafka::JobPartition(fact.job_id());
    Envelope envelope;
    envelope.set_pool("default");
    envelope.set_stream("queue/0");
    envelope.set_sequence(++sequences_[partition]);
    *envelope.mutable_job_fact() = std::move(fact);
    const kafka::TopicNames topics;
    CHECK(producer_
              ->Produce(topics.jobs,
                        partition,
                        kafka::RecordKey(envelope),
                        envelope.SerializeAsString(),
                        kafka::EnvelopeHeaders(envelope, partition),
                        ++sent_)
              .ok());
    CHECK(producer_->Flush(kDeadline).ok());
  }

  // What the binder said of a job: "bound/1", "failed/1 Conflict", "stopped/1"; repeats of the same
  // sequence left out, as every consumer does.
  std::vector<std::string> Heard(const std::string& job_id) {
    std::vector<std::string> heard;
    std::set<std::pair<std::string, uint64_t>> seen;
    const kafka::TopicNames topics;
    const auto end = kafka::ReadPartition(
        world->kafka.bootstrap(),
        topics.pool,
        kPoolPartition,
        0,
        [&](const kafka::Message& message) {
          Envelope envelope;
          CHECK(envelope.ParseFromString(message.value));
          if (!seen.emplace(envelope.stream(), envelope.sequence()).second) return absl::OkStatus();
          if (envelope.job_bound().job_id() == job_id && envelope.has_job_bound()) {
            heard.push_back(fmt::format("bound/{}", envelope.job_bound().attempt()));
          } else if (envelope.has_bind_failed() && envelope.bind_failed().job_id() == job_id) {
            heard.push_back(fmt::format(
                "failed/{} {}", envelope.bind_failed().attempt(), envelope.bind_failed().reason()));
          } else if (envelope.has_job_stopped() && envelope.job_stopped().job_id() == job_id) {
            heard.push_back(fmt::format("stopped/{}", envelope.job_stopped().attempt()));
          }
          return absl::OkStatus();
        });
    CHECK(end.ok(), "{}", end.status().ToString());
    return heard;
  }

  int64_t Count(const std::string& sql) {
    int64_t count = -1;
    const absl::Status status = db_.Query([&](pqxx::transaction_base& tx) {
      count = tx.exec1(sql)[0].as<int64_t>();
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}", status.ToString());
    return count;
  }

 private:
  postgres::Connection db_;
  std::unique_ptr<kafka::Producer> producer_;
  std::map<std::string, uint64_t> versions_;
  std::map<int, uint64_t> sequences_;
  uint64_t sent_ = 0;
};

std::string PodSpec(const std::string& extra) {
  return fmt::format(
      "{{{}\"containers\":[{{\"name\":\"c\",\"image\":\"none\",\"resources\":{{\"requests\":"
      "{{\"cpu\":\"100m\"}}}}}}]}}",
      extra);
}
const char kDirect[] = R"("schedulerName":"fluxqueue",)";

class BinderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    others_ = new Others();
    binder_ = new BinderProcess("binder-0");
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(binder_->End(SIGTERM), 0);
    delete binder_;
    delete others_;
  }
  void TearDown() override {
    if (HasFailure()) fmt::print("---- log of the binder\n{}", binder_->Log());
  }

  static JobFact PodFact(const std::string& name) {
    JobFact fact = Fact("Pod", name, 1);
    fact.mutable_workload()->set_recreatable(false);
    return fact;
  }
  static JobFact Fact(const std::string& kind, const std::string& name, uint32_t slots) {
    const std::string uid = Kubectl({"get", kind, name, "-o", "jsonpath={.metadata.uid}"});
    JobFact fact;
    fact.set_job_id(uid);
    fact.set_pool("default");
    fact.set_queue("default");
    fact.set_slots(slots);
    events::v1::Workload* workload = fact.mutable_workload();
    workload->set_kind(kind);
    workload->set_namespace_("default");
    workload->set_name(name);
    workload->set_uid(uid);
    workload->set_completions(slots);
    workload->set_recreatable(true);
    return fact;
  }
  static void CreatePod(const std::string& name,
                        const std::string& spec_extra = kDirect,
                        const std::string& held = "direct") {
    const std::string made =
        Kubectl({"create", "-f", "-"},
                fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":)"
                            R"({{"fluxqueue.io/held":"{}"}}}},"spec":{}}})",
                            name,
                            held,
                            PodSpec(spec_extra)));
    ASSERT_TRUE(made.starts_with("pod/")) << made;
  }
  static void CreateJob(const std::string& name, int pods, const std::string& extra = "") {
    const std::string made = Kubectl(
        {"create", "-f", "-"},
        fmt::format(
            R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"{}","annotations":)"
            R"({{"fluxqueue.io/suspended-by":"fluxqueue"}}}},"spec":{{{}"completions":{},)"
            R"("parallelism":{},"template":{{"metadata":{{"labels":{{"fluxqueue.io/held":"direct"}},)"
            R"("annotations":{{"fluxqueue.io/run-seconds":"600"}}}},"spec":{}}}}}}})",
            name,
            extra,
            pods,
            pods,
            PodSpec(R"("schedulerName":"fluxqueue","restartPolicy":"Never",)")));
    ASSERT_TRUE(made.starts_with("job.batch/")) << made;
  }
  static void Allocate(const JobFact& fact,
                       const std::vector<std::string>& nodes,
                       uint32_t attempt = 1) {
    others_->Place(fact.job_id(), attempt, nodes);
    others_->Say(fact, events::v1::JOB_STATE_ALLOCATED, attempt);
  }
  // "index node allocation" of the Job's live pods, sorted.
  static std::vector<std::string> PodsOf(const std::string& job) {
    const std::string text = Kubectl(
        {"get",
         "pods",
         "-l",
         "job-name=" + job,
         "-o",
         R"(jsonpath={range .items[?(@.spec.nodeName)]}{.metadata.annotations['batch\.kubernetes\.io/job-completion-index']} )"
         R"({.spec.nodeName} {.metadata.annotations['fluxqueue\.io/allocation']}{"\n"}{end})"});
    std::multiset<std::string> lines;
    std::stringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      if (!line.empty()) lines.insert(line);
    }
    return {lines.begin(), lines.end()};
  }
  static bool HearsSoon(const JobFact& fact, const std::vector<std::string>& wanted) {
    return Eventually([&] { return others_->Heard(fact.job_id()) == wanted; });
  }
  static std::string PodField(const std::string& name, const std::string& path) {
    return Kubectl({"get", "pod", name, "-o", "jsonpath={" + path + "}"});
  }

  static Others* others_;
  static BinderProcess* binder_;
};
Others* BinderTest::others_ = nullptr;
BinderProcess* BinderTest::binder_ = nullptr;

TEST_F(BinderTest, ABarePodRunsOnItsNode) {
  CreatePod("bare");
  const JobFact fact = PodFact("bare");
  Allocate(fact, {"node-2"});
  EXPECT_TRUE(HearsSoon(fact, {"bound/1"}));
  EXPECT_EQ(PodField("bare", ".spec.nodeName"), "node-2");
  EXPECT_EQ(PodField("bare", R"(.metadata.annotations.fluxqueue\.io/allocation)"), "1.0.0/1");
  EXPECT_EQ(PodField("bare", R"(.metadata.annotations.fluxqueue\.io/job-id)"), fact.job_id());

  others_->Say(fact, events::v1::JOB_STATE_STOPPING);  // cancelled: it was bound, so it goes
  EXPECT_TRUE(HearsSoon(fact, {"bound/1", "stopped/1"}));
  EXPECT_TRUE(PodField("bare", ".metadata.name").starts_with("error"));
  others_->Say(fact, events::v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(Eventually([] {
    return others_->Count(
               "SELECT (SELECT count(*) FROM binder.jobs) + "
               "(SELECT count(*) FROM binder.slots)") == 0;
  }));
}

TEST_F(BinderTest, IndexesFollowThePlacement) {
  CreateJob("indexed", 3, R"("completionMode":"Indexed",)");
  JobFact fact = Fact("Job", "indexed", 3);
  fact.mutable_workload()->set_indexed(true);
  Allocate(fact, {"node-3", "node-1", "node-2"});
  ASSERT_TRUE(HearsSoon(fact, {"bound/1"}));
  EXPECT_THAT(PodsOf("indexed"),
              ElementsAre("0 node-3 1.0.0/3", "1 node-1 1.0.1/3", "2 node-2 1.0.2/3"));
}

TEST_F(BinderTest, ASuspendedJobIsResumedStoppedAndResumedAgain) {
  CreateJob("held", 2, R"("suspend":true,)");
  JobFact fact = Fact("Job", "held", 2);
  fact.mutable_workload()->set_suspended(true);
  Allocate(fact, {"node-0", "node-1"});
  ASSERT_TRUE(HearsSoon(fact, {"bound/1"}));

  others_->Say(fact, events::v1::JOB_STATE_STOPPING);
  ASSERT_TRUE(HearsSoon(fact, {"bound/1", "stopped/1"}));
  EXPECT_EQ(Kubectl({"get", "job", "held", "-o", "jsonpath={.spec.suspend}"}), "true");
  EXPECT_THAT(PodsOf("held"), ElementsAre());

  others_->Say(fact, events::v1::JOB_STATE_PENDING, 2);
  Allocate(fact, {"node-2", "node-3"}, 2);
  ASSERT_TRUE(HearsSoon(fact, {"bound/1", "stopped/1", "bound/2"}));
  EXPECT_THAT(PodsOf("held"), ElementsAre(" node-2 2.0.0/2", " node-3 2.0.1/2"));
}

TEST_F(BinderTest, AReplacementGetsTheSlotOfItsPredecessor) {
  CreateJob("replaced", 1);
  const JobFact fact = Fact("Job", "replaced", 1);
  Allocate(fact, {"node-1"});
  ASSERT_TRUE(HearsSoon(fact, {"bound/1"}));
  const auto uid = [] {
    return Kubectl({"get",
                    "pods",
                    "-l",
                    "job-name=replaced",
                    "-o",
                    "jsonpath={.items[?(@.spec.nodeName)].metadata.uid}"});
  };
  const std::string first = uid();
  Kubectl({"delete", "pods", "-l", "job-name=replaced", "--wait=false"});
  EXPECT_TRUE(Eventually([&] {
    const std::string now = uid();
    return !now.empty() && now.find(first) == std::string::npos;
  }));
  EXPECT_THAT(PodsOf("replaced"), ElementsAre(" node-1 1.0.0/1"));
}

TEST_F(BinderTest, APinnedPodIsScheduledToItsNode) {
  CreatePod("pinned", R"("schedulingGates":[{"name":"fluxqueue.io/gate"}],)", "pinned");
  const JobFact fact = PodFact("pinned");
  Allocate(fact, {"node-3"});
  EXPECT_TRUE(HearsSoon(fact, {"bound/1"}));
  EXPECT_EQ(PodField("pinned", ".spec.nodeName"), "node-3");
}

TEST_F(BinderTest, APodThatCannotBeBoundIsFenced) {
  CreatePod("stuck", std::string(kDirect) + R"("schedulingGates":[{"name":"example.com/other"}],)");
  const JobFact fact = PodFact("stuck");
  Allocate(fact, {"node-0"});
  ASSERT_TRUE(HearsSoon(fact, {"failed/1 Conflict"}));
  others_->Say(fact, events::v1::JOB_STATE_STOPPING);
  ASSERT_TRUE(HearsSoon(fact, {"failed/1 Conflict", "stopped/1"}));
  EXPECT_EQ(PodField("stuck", R"(.metadata.annotations.fluxqueue\.io/fenced)"), "1");
  EXPECT_EQ(PodField("stuck", ".spec.nodeName"), "");
}

TEST_F(BinderTest, KilledInTheMiddleEachJobIsBoundOnce) {
  constexpr int kPods = 40;
  std::vector<JobFact> facts;
  for (int i = 0; i < kPods; ++i) {
    CreatePod(fmt::format("kill-{}", i));
    facts.push_back(PodFact(fmt::format("kill-{}", i)));
    others_->Place(facts.back().job_id(), 1, {fmt::format("node-{}", i % 4)});
  }
  for (int i = 0; i < kPods; ++i) {
    others_->Say(facts[static_cast<size_t>(i)], events::v1::JOB_STATE_ALLOCATED);
    if (i == kPods / 2) {
      EXPECT_EQ(binder_->End(SIGKILL), -1);
      binder_->Start();
    }
  }
  for (int i = 0; i < kPods; ++i) {
    EXPECT_TRUE(HearsSoon(facts[static_cast<size_t>(i)], {"bound/1"})) << i;
    EXPECT_EQ(PodField(fmt::format("kill-{}", i), ".spec.nodeName"), fmt::format("node-{}", i % 4));
  }
}

}  // namespace
}  // namespace fluxqueue::binder

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  using namespace fluxqueue::binder;
  namespace kafka = fluxqueue::kafka;
  namespace postgres = fluxqueue::postgres;
  char folder[] = "/tmp/binder-test-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  world = new World();
  world->folder = folder;
  auto cluster = fluxqueue::testing::MiniCluster::Start({.nodes = 4, .arguments = {}});
  CHECK(cluster.ok(), "{}", cluster.status().ToString());
  world->cluster = *std::move(cluster);
  {
    postgres::Connection db({.dsn = world->postgres.dsn(), .application = "test", .schema = ""});
    const absl::Status status = db.Transact([](pqxx::transaction_base& tx) {
      ApplySchema(tx, "admission");
      ApplySchema(tx, "matcher");
      tx.exec(
          fmt::format("INSERT INTO admission.pools (pool, partition, config) "
                      "VALUES ('default', {}, '')",
                      kPoolPartition));
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}", status.ToString());
    auto admin = kafka::Admin::Create(world->kafka.bootstrap());
    CHECK(admin.ok(), "{}", admin.status().ToString());
    CHECK((*admin)->EnsureTopics(kafka::TopicSpecs({})).ok());
  }
  const int result = RUN_ALL_TESTS();
  delete world;
  std::filesystem::remove_all(folder);
  return result;
}
