// The admission program itself, with a real API server that calls its webhook, a real Kafka and a
// real Postgres.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/status_macros.h"
#include "libs/http/client.h"
#include "libs/kafka/reader.h"
#include "libs/kafka/topics.h"
#include "libs/postgres/connection.h"
#include "libs/testing/mini_cluster.h"
#include "libs/testing/mini_kafka.h"
#include "libs/testing/mini_postgres.h"

#include "absl/strings/escaping.h"
#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

using events::v1::Envelope;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(30);

// Until `done`, which leaves in *seen what it saw.
void WaitFor(const char* what, const std::function<bool(std::string* seen)>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string seen;
  while (!done(&seen)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "waited for " << what << ": " << seen;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  return bound ? ntohs(address.sin_port) : 0;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string Replace(std::string text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// What all tests share, started once.
class World {
 public:
  static World& Get() {
    static World* world = new World();
    return *world;
  }
  static void Destroy() { delete &Get(); }

  testing::MiniCluster& cluster() { return *cluster_; }
  const std::string& folder() const { return folder_; }
  std::string certificate() const { return folder_ + "/tls.crt"; }
  std::string key() const { return folder_ + "/tls.key"; }
  const std::string& kafka() const { return kafka_.bootstrap(); }
  const std::string& dsn() const { return postgres_.dsn(); }

  std::string Kubectl(const std::vector<std::string>& arguments, const std::string& input = "") {
    auto output = cluster_->Kubectl(arguments, input);
    EXPECT_TRUE(output.ok()) << output.status();
    return output.ok() ? *output : "";
  }

  // The API server asks the replica with this port.
  void PointWebhookTo(int port) {
    std::string bundle;
    absl::Base64Escape(ToAbsl(ReadFile(certificate())), &bundle);
    std::string manifest = ReadFile(FLUXQUEUE_SOURCE_DIR "/k8s/webhook.yaml");
    manifest =
        Replace(manifest, "${WEBHOOK_URL}", fmt::format("https://127.0.0.1:{}/mutate", port));
    Kubectl({"apply", "-f", "-"}, Replace(manifest, "${CA_BUNDLE}", bundle));
  }

  // The log of the pool "default", from its start, as a consumer takes it: what a new owner
  // publishes again has the sequence it had. The first pool is in the first partition.
  std::vector<Envelope> Log() {
    std::vector<Envelope> log;
    std::map<std::string, uint64_t> sequences;
    const auto end = kafka::ReadPartition(
        kafka(), kafka::TopicNames().pool, 0, 0, [&](const kafka::Message& message) {
          Envelope envelope;
          if (!envelope.ParseFromString(message.value)) return Internal("no envelope");
          uint64_t& highest = sequences[envelope.stream()];
          if (envelope.sequence() <= highest) return absl::OkStatus();
          EXPECT_EQ(envelope.sequence(), highest + 1) << "a gap in " << envelope.stream();
          highest = envelope.sequence();
          log.push_back(std::move(envelope));
          return absl::OkStatus();
        });
    EXPECT_TRUE(end.ok()) << end.status();
    return log;
  }

 private:
  World() {
    folder_ = (std::filesystem::temp_directory_path() / "fluxqueue-admission-XXXXXX").string();
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    const std::string command = fmt::format(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout {} -out {} -subj /CN=admission "
        "-addext subjectAltName=IP:127.0.0.1 2>/dev/null",
        key(),
        certificate());
    EXPECT_EQ(std::system(command.c_str()), 0);
    auto cluster = testing::MiniCluster::Start();
    if (!cluster.ok()) {
      ADD_FAILURE() << cluster.status();
      std::exit(1);
    }
    cluster_ = *std::move(cluster);
    Kubectl({"apply", "-f", FLUXQUEUE_SOURCE_DIR "/k8s/crds"});
    Kubectl({"wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"});
    Kubectl({"apply", "-f", FLUXQUEUE_SOURCE_DIR "/k8s/queues"});
    Kubectl({"apply", "-f", FLUXQUEUE_SOURCE_DIR "/k8s/policy.yaml"});
    for (const char* space : {"work", "free"}) Kubectl({"create", "namespace", space});
    Kubectl({"label", "namespace", "work", "fluxqueue.io/managed=true"});
  }

  ~World() { std::filesystem::remove_all(folder_); }

  std::string folder_;
  testing::MiniKafka kafka_;
  testing::MiniPostgres postgres_;
  std::unique_ptr<testing::MiniCluster> cluster_;
};

class Environment : public ::testing::Environment {
 public:
  void TearDown() override { World::Destroy(); }
};
const auto* const kEnvironment = ::testing::AddGlobalTestEnvironment(new Environment());

// One process of the program.
class Replica {
 public:
  explicit Replica(std::string name)
      : Replica(std::move(name), World::Get().dsn(), World::Get().kafka()) {}
  Replica(std::string name, const std::string& dsn, const std::string& kafka)
      : name_(std::move(name)) {
    const World& world = World::Get();
    config_ = fmt::format("{}/{}.yaml", world.folder(), name_);
    std::ofstream(config_) << fmt::format(R"(instance: {}
http: {{address: 127.0.0.1, port: {}}}
postgres: {{dsn: "{}"}}
kafka: {{bootstrap: "{}", session_timeout: 2s}}
kubernetes: {{kubeconfig: "{}"}}
admission:
  webhook: {{address: 127.0.0.1, port: {}, certificate: "{}", key: "{}", max_body: 64KiB}}
)",
                                          name_,
                                          health_port_,
                                          dsn,
                                          kafka,
                                          World::Get().cluster().kubeconfig(),
                                          webhook_port_,
                                          world.certificate(),
                                          world.key());
  }
  ~Replica() { Kill(); }

  int webhook_port() const { return webhook_port_; }

  void Start() {
    Begin();
    WaitFor("a ready replica", [&](std::string* seen) {
      const auto ready = Ready();
      *seen = (ready.ok() ? ready->body : Message(ready.status())) + "\n" + ReadFile(log_);
      return ready.ok() && ready->status == 200;
    });
  }

  // As Start, without waiting.
  void Begin() {
    pid_ = fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      if (std::freopen(log_.c_str(), "a", stderr) == nullptr) _exit(1);
      const std::string program = FLUXQUEUE_BINARY_DIR "/bin/fluxqueue-admission";
      execl(program.c_str(), program.c_str(), "--config", config_.c_str(), nullptr);
      _exit(127);
    }
  }

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  // With SIGTERM; the exit code.
  int Stop() {
    kill(pid_, SIGTERM);
    return WaitForExit();
  }
  int WaitForExit() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  absl::StatusOr<http::Response> Ready() const {
    return Http("http", health_port_, "GET", "/readyz", "");
  }
  absl::StatusOr<http::Response> WebhookReady() const {
    return Http("https", webhook_port_, "GET", "/readyz", "");
  }
  absl::StatusOr<http::Response> Post(const std::string& body) const {
    return Http("https", webhook_port_, "POST", "/mutate", body);
  }

  // Objects that its webhook has held, by its metrics.
  double Held() const {
    const auto response = Http("http", health_port_, "GET", "/metrics", "");
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok()) return 0;
    const std::string name = "fluxqueue_webhook_reviews_total{verdict=\"held\"} ";
    const size_t at = response->body.find(name);
    EXPECT_NE(at, std::string::npos) << response->body;
    return at == std::string::npos ? 0 : std::stod(response->body.substr(at + name.size()));
  }

 private:
  static absl::StatusOr<http::Response> Http(const char* scheme,
                                             int port,
                                             const char* method,
                                             const char* target,
                                             const std::string& body) {
    http::ClientOptions options;
    options.base_url = fmt::format("{}://127.0.0.1:{}", scheme, port);
    options.tls.ca = ReadFile(World::Get().certificate());
    http::Client client(options);
    http::ClientRequest request;
    request.method = method;
    request.target = target;
    request.content_type = "application/json";
    request.body = body;
    return client.Do(request);
  }

  const std::string name_;
  const std::string log_ = fmt::format("{}/{}.log", World::Get().folder(), name_);
  const int health_port_ = FreePort();
  const int webhook_port_ = FreePort();
  std::string config_;
  pid_t pid_ = 0;
};

std::string JobYaml(const std::string& name,
                    int pods = 1,
                    const std::string& space = "work",
                    const std::string& metadata = "") {
  return fmt::format(R"(---
apiVersion: batch/v1
kind: Job
metadata: {{name: "{}", namespace: {}{}}}
spec:
  parallelism: {}
  completions: {}
  template:
    spec:
      restartPolicy: Never
      containers:
        - {{name: c, image: none, resources: {{requests: {{cpu: 500m, memory: 64Mi}}}}}}
)",
                     name,
                     space,
                     metadata,
                     pods,
                     pods);
}

std::string PodYaml(const std::string& metadata) {
  return fmt::format(R"(---
apiVersion: v1
kind: Pod
metadata: {{{}}}
spec:
  restartPolicy: Never
  containers:
    - {{name: c, image: none, resources: {{limits: {{cpu: 500m}}}}}}
)",
                     metadata);
}

// The first value of the last statement.
std::string Sql(const std::string& sql) {
  postgres::Connection connection(
      {.dsn = World::Get().dsn(), .application = "test", .schema = "public"});
  std::string value;
  const absl::Status status = connection.Query([&](pqxx::transaction_base& tx) {
    const pqxx::result rows = tx.exec(sql);
    if (!rows.empty()) value = rows[0][0].c_str();
    return absl::OkStatus();
  });
  return status.ok() ? value : Message(status);
}

class AdmissionTest : public ::testing::Test {
 protected:
  // How often each workload of this name prefix was submitted.
  static std::map<std::string, int> Submitted(const std::string& prefix) {
    std::map<std::string, int> count;
    for (const Envelope& envelope : World::Get().Log()) {
      const std::string& name = envelope.job_submitted().workload().name();
      if (envelope.has_job_submitted() && name.starts_with(prefix)) ++count[name];
    }
    return count;
  }

  static void WaitForSubmitted(const std::string& prefix, size_t jobs) {
    WaitFor("submissions", [&](std::string* seen) {
      const size_t count = Submitted(prefix).size();
      *seen = fmt::format("{} of {}", count, jobs);
      return count >= jobs;
    });
  }

  // "Job work/a": what is left out.
  static void WaitForQuarantine(const std::string& objects) {
    WaitFor("quarantine", [&](std::string* seen) {
      *seen =
          Sql("SELECT coalesce(string_agg(kind || ' ' || space || '/' || name, ', '), '') "
              "FROM admission.quarantine WHERE held");
      return *seen == objects;
    });
  }

  static void ExpectOnce(const std::string& prefix) {
    for (const auto& [name, count] : Submitted(prefix)) EXPECT_EQ(count, 1) << name;
  }

  // Once a later workload has been submitted, an earlier one that is not there will never be.
  static void Fence(const std::string& name) {
    World::Get().Kubectl({"create", "-f", "-"}, JobYaml(name));
    WaitForSubmitted(name, 1);
  }

  static json Get(const std::string& kind,
                  const std::string& name,
                  const std::string& space = "work") {
    return json::parse(
        World::Get().Kubectl({"get", kind, name, "-n", space, "-o", "json"}), nullptr, false);
  }

  static std::string Refused(const std::string& manifest) {
    const auto output = World::Get().cluster().Kubectl({"create", "-f", "-"}, manifest);
    EXPECT_FALSE(output.ok()) << *output;
    return output.ok() ? "" : Message(output.status());
  }

  // As somebody who may do everything, and is not us.
  static absl::StatusOr<std::string> As(const std::string& user,
                                        std::vector<std::string> arguments,
                                        const std::string& manifest = "") {
    arguments.insert(arguments.end(), {"--as", user, "--as-group", "system:masters"});
    return World::Get().cluster().Kubectl(arguments, manifest);
  }
  static std::string RefusedAs(const std::string& user,
                               const std::vector<std::string>& arguments,
                               const std::string& manifest = "") {
    const auto output = As(user, arguments, manifest);
    EXPECT_FALSE(output.ok()) << *output;
    return output.ok() ? "" : Message(output.status());
  }

  static void StartFirst(Replica& replica) {
    replica.Start();
    LeadWebhookTo(replica);
  }

  // The API server takes a moment to follow its new configuration: until this replica has been
  // asked.
  static void LeadWebhookTo(const Replica& replica) {
    const double before = replica.Held();
    World::Get().PointWebhookTo(replica.webhook_port());
    WaitFor("the webhook", [&](std::string* seen) {
      const auto pod =
          World::Get().cluster().Kubectl({"create", "--dry-run=server", "-o", "name", "-f", "-"},
                                         PodYaml("generateName: probe-, namespace: work"));
      *seen = pod.ok() ? *pod : Message(pod.status());
      return replica.Held() > before;
    });
  }
};

TEST_F(AdmissionTest, HoldsAndSubmitsOnce) {
  World& world = World::Get();
  Replica replica("once");
  StartFirst(replica);

  world.Kubectl({"apply", "-f", "-"}, JobYaml("once-small", 3));
  world.Kubectl({"apply", "-f", "-"}, JobYaml("once-small", 3));
  world.Kubectl({"apply", "-f", "-"}, JobYaml("once-big", 20));
  const std::string pod = world.Kubectl({"create", "-o", "name", "-f", "-"},
                                        PodYaml("generateName: once-pod-, namespace: work"));
  WaitForSubmitted("once-", 3);

  const json small = Get("job", "once-small");
  EXPECT_EQ(small["metadata"]["labels"]["fluxqueue.io/held"], "direct");
  EXPECT_EQ(small["spec"]["template"]["metadata"]["labels"]["fluxqueue.io/held"], "direct");
  EXPECT_EQ(small["spec"]["template"]["spec"]["schedulerName"], "fluxqueue");
  EXPECT_EQ(small["spec"]["suspend"], false);
  const json big = Get("job", "once-big");
  EXPECT_EQ(big["spec"]["suspend"], true);
  EXPECT_EQ(big["metadata"]["annotations"]["fluxqueue.io/suspended-by"], "fluxqueue");
  WaitFor("the small Job's pods", [&](std::string* seen) {
    *seen = world.Kubectl({"get", "pods", "-n", "work", "-l", "job-name=once-small", "-o", "json"});
    const json pods = json::parse(*seen)["items"];
    for (const json& item : pods) {
      if (item["spec"]["schedulerName"] != "fluxqueue") return false;
    }
    return pods.size() == 3;
  });

  Fence("once-fence");
  EXPECT_EQ(Submitted("once-").size(), 4);
  ExpectOnce("once-");
  const std::vector<Envelope> log = world.Log();
  ASSERT_GE(log.size(), 3);
  EXPECT_TRUE(log[0].has_pool_configured());
  EXPECT_TRUE(log[1].has_queue_configured());
  for (const Envelope& envelope : log) {
    const auto& submitted = envelope.job_submitted();
    if (submitted.workload().name() == "once-big") {
      EXPECT_TRUE(submitted.workload().suspended());
      EXPECT_EQ(submitted.spec().slots(), 20);
    } else if (submitted.workload().kind() == "Pod") {
      // The API server makes a request of a limit.
      EXPECT_THAT(submitted.spec().jobspec(), HasSubstr(R"({"type":"cpu","count":500})"));
    }
  }
  EXPECT_GE(replica.Held(), 4);
  EXPECT_EQ(replica.Stop(), 0);
}

TEST_F(AdmissionTest, DryRunsAndOthersLeaveNoTrace) {
  World& world = World::Get();
  Replica replica("dry");
  StartFirst(replica);
  const std::string dry = world.Kubectl({"create", "--dry-run=server", "-o", "json", "-f", "-"},
                                        JobYaml("dry-run", 20));
  EXPECT_EQ(json::parse(dry)["spec"]["suspend"], true);
  world.Kubectl({"create", "-f", "-"}, JobYaml("dry-free", 20, "free"));
  world.Kubectl({"create", "-f", "-"},
                JobYaml("dry-out", 1, "work", ", labels: {fluxqueue.io/managed: \"false\"}"));
  world.Kubectl({"create", "-f", "-"},
                JobYaml("dry-labelled", 1, "free", ", labels: {fluxqueue.io/queue: default}"));
  Fence("dry-fence");
  WaitForSubmitted("dry-labelled", 1);
  const auto submitted = Submitted("dry-");
  EXPECT_EQ(submitted.size(), 2);
  EXPECT_EQ(submitted.count("dry-labelled"), 1);
  EXPECT_EQ(Get("job", "dry-free", "free")["spec"]["suspend"], false);
  EXPECT_EQ(Get("job", "dry-out")["spec"]["template"]["spec"]["schedulerName"],
            "default-scheduler");
}

TEST_F(AdmissionTest, RefusesAndAnswersMalformedRequests) {
  Replica replica("bad");
  StartFirst(replica);
  EXPECT_THAT(
      Refused(JobYaml("bad-duration", 1, "work", ", annotations: {fluxqueue.io/duration: soon}")),
      HasSubstr("fluxqueue.io/duration"));
  EXPECT_THAT(Refused(JobYaml("bad-queue", 1, "work", ", labels: {fluxqueue.io/queue: nope}")),
              HasSubstr("existing: default"));
  // Webhooks are asked before the API server looks whether a name is one.
  const std::string climbing = Replace(JobYaml("bad-priority"),
                                       "restartPolicy: Never",
                                       "restartPolicy: Never\n      priorityClassName: "
                                       "\"../../../../api/v1/pods?x=\"");
  EXPECT_THAT(Refused(climbing), HasSubstr("not the name of an object"));
  // A FluxQueue that was made this instant is found by the second look.
  World::Get().Kubectl({"create", "-f", "-"}, R"(
apiVersion: fluxqueue.io/v1alpha1
kind: FluxQueue
metadata: {name: instant}
spec: {pool: default, namespaceSelector: {}}
)" + JobYaml("bad-not", 1, "work", ", labels: {fluxqueue.io/queue: instant}"));
  WaitForSubmitted("bad-not", 1);

  auto response = replica.Post("this is not JSON");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 400);
  EXPECT_THAT(response->body, HasSubstr("not the JSON of an AdmissionReview"));
  response = replica.Post(R"({"kind": "Deployment", "apiVersion": "apps/v1"})");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 400);
  EXPECT_THAT(response->body, HasSubstr("Deployment"));
  response = replica.Post(std::string(200 << 10, ' '));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 413);
  Fence("bad-fence");
}

TEST_F(AdmissionTest, APodIsLeftToItsOwnerOnlyByWhoMakesIt) {
  World& world = World::Get();
  Replica replica("owners");
  StartFirst(replica);
  world.Kubectl({"create", "-f", "-"}, R"(
apiVersion: v1
kind: Node
metadata: {name: owners-node}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: owners-web, namespace: work}
spec:
  replicas: 2
  selector: {matchLabels: {app: owners-web}}
  template:
    metadata: {labels: {app: owners-web}}
    spec: {containers: [{name: c, image: none}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: owners-agent, namespace: work}
spec:
  selector: {matchLabels: {app: owners-agent}}
  template:
    metadata: {labels: {app: owners-agent}}
    spec: {containers: [{name: c, image: none}]}
)");
  const auto pods_of = [&](const std::string& app, size_t count, const std::string& scheduler) {
    WaitFor(app.c_str(), [&](std::string* seen) {
      *seen = world.Kubectl({"get", "pods", "-n", "work", "-l", "app=" + app, "-o", "json"});
      const json pods = json::parse(*seen)["items"];
      for (const json& pod : pods) {
        EXPECT_EQ(pod["spec"]["schedulerName"], scheduler);
        const json labels = pod["metadata"]["labels"];
        EXPECT_EQ(labels.contains("fluxqueue.io/held"), scheduler == "fluxqueue");
      }
      return pods.size() == count;
    });
  };
  pods_of("owners-web", 2, "fluxqueue");
  pods_of("owners-agent", 1, "default-scheduler");
  // The same owners, by a person.
  const auto owned = [](const std::string& name, const char* api_version, const char* kind) {
    return PodYaml(
        fmt::format("name: {}, namespace: work, ownerReferences: [{{apiVersion: {}, "
                    "kind: {}, name: o, uid: 0f0f0f0f, controller: true}}]",
                    name,
                    api_version,
                    kind));
  };
  const auto forged = As("ann",
                         {"create", "--dry-run=server", "-o", "yaml", "-f", "-"},
                         owned("owners-forged", "apps/v1", "DaemonSet"));
  ASSERT_TRUE(forged.ok()) << forged.status();
  EXPECT_THAT(*forged, HasSubstr("fluxqueue.io/held: direct"));
  EXPECT_THAT(*forged, HasSubstr("fluxqueue.io/user: ann"));
  EXPECT_THAT(RefusedAs("ann", {"create", "-f", "-"}, owned("owners-job", "batch/v1", "Job")),
              HasSubstr("made by the Job's controller alone"));
  WaitForSubmitted("owners-web", 2);
  world.Kubectl({"delete", "-n", "work", "deployment/owners-web", "daemonset/owners-agent"});
  world.Kubectl({"delete", "node", "owners-node"});
}

TEST_F(AdmissionTest, WhatIsOursIsWrittenByNobodyElse) {
  World& world = World::Get();
  Replica replica("keys");
  StartFirst(replica);
  const std::string held = "fluxqueue.io/held: direct";
  const std::string victim = "annotations: {fluxqueue.io/user: victim}";
  const auto pod = [](const std::string& labels, const std::string& more, const char* space) {
    return PodYaml(
        fmt::format("name: keys-pod, namespace: {}, labels: {{{}}}, {}", space, labels, more));
  };
  const auto refused = [](const std::string& manifest) {
    return RefusedAs("ann", {"create", "-f", "-"}, manifest);
  };
  WaitFor("the policies", [&](std::string* seen) {
    const auto made =
        As("ann", {"create", "--dry-run=server", "-f", "-"}, pod(held, victim, "free"));
    *seen = made.ok() ? *made : Message(made.status());
    return seen->find("this namespace is not managed") != std::string::npos;
  });
  const std::string out = held + ", fluxqueue.io/managed: \"false\"";
  EXPECT_THAT(refused(pod(out, victim, "work")), HasSubstr("leave out one of them"));
  EXPECT_THAT(refused(pod(out + ", fluxqueue.io/queue: default", victim, "free")),
              HasSubstr("leave out one of them"));
  EXPECT_THAT(refused(pod(held, victim, "kube-system")), HasSubstr("not managed"));
  const std::string on_node = "spec:\n  nodeName: n1";
  EXPECT_THAT(refused(Replace(pod(held, victim, "work"), "spec:", on_node)),
              HasSubstr("needs no queue"));
  const std::string job = JobYaml("keys-forged", 1, "work", ", labels: {" + held + "}, " + victim);
  EXPECT_THAT(
      refused(Replace(job, "restartPolicy: Never", "restartPolicy: Never\n      nodeName: n1")),
      HasSubstr("needs no queue"));
  EXPECT_THAT(
      refused(Replace(
          JobYaml("keys-template"), "template:", "template:\n    metadata: {" + victim + "}")),
      HasSubstr("of the pod template too"));
  // Where the webhook is asked, it writes who it is.
  const auto mine =
      As("ann", {"create", "--dry-run=server", "-o", "yaml", "-f", "-"}, pod(held, victim, "work"));
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_THAT(*mine, HasSubstr("fluxqueue.io/user: ann"));

  const std::string pinned =
      Replace(PodYaml("name: keys-pinned, namespace: work"),
              "spec:",
              "spec:\n  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]");
  ASSERT_TRUE(As("ann", {"create", "-f", "-"}, pinned).ok());
  const std::vector<std::string> ungate = {"patch",
                                           "pod",
                                           "keys-pinned",
                                           "-n",
                                           "work",
                                           "--type=json",
                                           "-p",
                                           R"([{"op": "remove", "path": "/spec/schedulingGates"}])",
                                           "--dry-run=server"};
  EXPECT_THAT(RefusedAs("ann", ungate), HasSubstr("the gate fluxqueue.io/gate"));
  const auto annotate = [](const char* what) {
    return std::vector<std::string>{
        "annotate", "pod", "keys-pinned", "-n", "work", "--overwrite", "--dry-run=server", what};
  };
  for (const char* key : {"job-id",
                          "allocation",
                          "proof",
                          "gpu-devices",
                          "suspended-by",
                          "deadline",
                          "fenced",
                          "traceparent"}) {
    const std::string what = fmt::format("fluxqueue.io/{}=1", key);
    EXPECT_THAT(RefusedAs("ann", annotate(what.c_str())), HasSubstr("Fluxqueue's own record"))
        << key;
  }
  EXPECT_THAT(
      RefusedAs(
          "ann",
          {"patch",
           "pod",
           "keys-pinned",
           "-n",
           "work",
           "--dry-run=server",
           "-p",
           R"({"metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true}]}})"}),
      HasSubstr("whose slots the pod has"));
  EXPECT_TRUE(As("ann", annotate("fluxqueue.io/hold=true")).ok());
  const std::string binder = "system:serviceaccount:fluxqueue-system:fluxqueue-binder";
  const auto annotated = As(binder, annotate("fluxqueue.io/allocation=1.0.0/1"));
  EXPECT_TRUE(annotated.ok()) << annotated.status();
  const auto ungated = As(binder, ungate);
  EXPECT_TRUE(ungated.ok()) << ungated.status();
  world.Kubectl({"delete", "pod", "keys-pinned", "-n", "work"});
}

TEST_F(AdmissionTest, HoldsWhileDatabaseAndBrokerAreAway) {
  const int nobody = FreePort();
  Replica replica("alone",
                  fmt::format("host=127.0.0.1 port={} dbname=x user=x", nobody),
                  fmt::format("127.0.0.1:{}", nobody));
  replica.Begin();
  WaitFor("a webhook that answers", [&](std::string* seen) {
    const auto ready = replica.WebhookReady();
    *seen = ready.ok() ? ready->body : Message(ready.status());
    return ready.ok() && ready->status == 200;
  });
  const auto whole = replica.Ready();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->status, 503);
  EXPECT_THAT(whole->body, HasSubstr("watch loop"));
  World::Get().PointWebhookTo(replica.webhook_port());
  WaitFor("a Job that is held", [&](std::string* seen) {
    *seen = World::Get().Kubectl({"create", "--dry-run=server", "-o", "yaml", "-f", "-"},
                                 JobYaml("alone", 1, "work", ""));
    return seen->find("schedulerName: fluxqueue") != std::string::npos;
  });
}

TEST_F(AdmissionTest, SaysWhatChangesAndWhatGoes) {
  World& world = World::Get();
  Replica replica("changes");
  StartFirst(replica);
  world.Kubectl({"create", "-f", "-"}, JobYaml("changes-a") + JobYaml("changes-b"));
  WaitForSubmitted("changes-", 2);
  world.Kubectl({"annotate", "job", "changes-a", "-n", "work", "fluxqueue.io/hold=true"});
  world.Kubectl({"annotate", "job", "changes-a", "-n", "work", "fluxqueue.io/priority=high"});
  WaitFor("an Event of the refusal", [&](std::string* seen) {
    *seen = world.Kubectl({"get", "events", "-n", "work", "-o", "json"});
    return seen->find("\"high\\\" is not a priority") != std::string::npos;
  });
  world.Kubectl({"delete", "job", "changes-a", "-n", "work"});
  const auto withdrawn = [&](size_t wanted) {
    WaitFor("withdrawals", [&](std::string* seen) {
      std::map<std::string, std::string> names;
      size_t count = 0;
      size_t holds = 0;
      for (const Envelope& envelope : world.Log()) {
        if (envelope.has_job_submitted()) {
          names[envelope.job_submitted().job_id()] = envelope.job_submitted().workload().name();
        }
        if (envelope.has_job_withdrawn() &&
            names[envelope.job_withdrawn().job_id()].starts_with("changes-")) {
          ++count;
        }
        if (envelope.job_updated().hold()) ++holds;
      }
      *seen = fmt::format("{} withdrawn, {} held", count, holds);
      return count == wanted && holds == 1;
    });
  };
  withdrawn(1);
  // Deleted while nobody looks.
  replica.Kill();
  world.Kubectl({"delete", "job", "changes-b", "-n", "work"});
  replica.Start();
  withdrawn(2);
}

TEST_F(AdmissionTest, AKilledReplicaRepeatsNothingAndAnotherTakesOver) {
  constexpr int kJobs = 60;
  World& world = World::Get();
  Replica first("takeover-a");
  Replica second("takeover-b");
  StartFirst(first);  // has the lease
  second.Start();
  LeadWebhookTo(second);
  std::string manifest;
  for (int i = 0; i < kJobs; ++i) manifest += JobYaml(fmt::format("takeover-{}", i));
  std::thread apply([&] { world.Kubectl({"create", "-f", "-"}, manifest); });
  WaitForSubmitted("takeover-", 5);
  first.Kill();
  apply.join();
  WaitForSubmitted("takeover-", kJobs);
  ExpectOnce("takeover-");

  // And back, from one that had everything to one that starts with rows.
  first.Start();
  LeadWebhookTo(first);
  second.Kill();
  world.Kubectl({"create", "-f", "-"}, JobYaml("takeover-again"));
  WaitForSubmitted("takeover-again", 1);
  EXPECT_EQ(Submitted("takeover-").size(), kJobs + 1);
  ExpectOnce("takeover-");
}

// The database refuses the row of `table` whose `column` says so, as it does a number that it has
// no room for.
void RefuseRow(const std::string& table, const std::string& column, const std::string& value) {
  Sql(
      fmt::format("CREATE FUNCTION admission.refuse() RETURNS trigger AS $$ BEGIN "
                  "IF NEW.{} = '{}' THEN RAISE EXCEPTION 'too large' USING ERRCODE = '22003'; "
                  "END IF; RETURN NEW; END $$ LANGUAGE plpgsql; "
                  "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON admission.{} "
                  "FOR EACH ROW EXECUTE FUNCTION admission.refuse()",
                  column,
                  value,
                  table));
}
void RefuseNoRow() {
  Sql("DROP FUNCTION admission.refuse() CASCADE");
}

TEST_F(AdmissionTest, AWorkloadThatCannotBeWrittenIsLeftOut) {
  World& world = World::Get();
  Replica replica("left-out");
  StartFirst(replica);
  RefuseRow("workloads", "name", "refused-3");
  std::string manifest;
  for (int i = 0; i < 6; ++i) manifest += JobYaml(fmt::format("refused-{}", i));
  world.Kubectl({"create", "-f", "-"}, manifest);
  WaitForSubmitted("refused-", 5);
  WaitForQuarantine("Job work/refused-3");
  EXPECT_EQ(Submitted("refused-").count("refused-3"), 0);
  // By another that takes over, too; and nothing of the others is said again.
  replica.Kill();
  replica.Start();
  Fence("refused-not");
  WaitForQuarantine("Job work/refused-3");
  RefuseNoRow();
  Sql("UPDATE admission.quarantine SET retry = true");
  WaitForSubmitted("refused-", 7);
  ExpectOnce("refused-");
  WaitForQuarantine("");
}

// What is wrong with a FluxQueue is no workload's doing.
TEST_F(AdmissionTest, AQueueThatCannotBeWrittenBlamesNoWorkload) {
  World& world = World::Get();
  Replica replica("bad-queue");
  StartFirst(replica);
  RefuseRow("queues", "queue", "unwritable");
  world.Kubectl({"create", "-f", "-"}, JobYaml("beside-0") + JobYaml("beside-1") + R"(---
apiVersion: fluxqueue.io/v1alpha1
kind: FluxQueue
metadata: {name: unwritable}
spec: {namespaceSelector: {}}
)");
  EXPECT_NE(replica.WaitForExit(), 0);
  WaitForQuarantine("");
  RefuseNoRow();
  replica.Start();
  WaitForSubmitted("beside-", 2);
  world.Kubectl({"delete", "fluxqueue", "unwritable"});
}

}  // namespace
}  // namespace fluxqueue::admission
