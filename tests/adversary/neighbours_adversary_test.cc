// An honest tenant beside a hostile one. The hostile one does five things a second for two
// minutes, of all the kinds that stopped a service once, calls the aggregated API, and keeps
// connections of the webhook busy. Before that a tenant stands beside the honest one who makes as
// many plain pods: what these cost him, every cluster costs. FLUXQUEUE_ADVERSARY_MINUTES: for how
// long.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include "libs/http/client.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/config.h"
#include "libs/kubernetes/quantity.h"
#include "tests/adversary/tenant_test_base.h"

namespace fluxqueue::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kHonestEvery{500};
constexpr milliseconds kHostileEvery{200};
constexpr seconds kPlainFor{60};
constexpr milliseconds kPeakEvery{1000};
constexpr milliseconds kLeastChance{300};  // one pause of a machine of two cores
constexpr milliseconds kMostChance{1000};
constexpr int kIdleConnections = 300;
constexpr double kMiB = 1 << 20;
constexpr kubernetes::Resource kQueued{"visibility.fluxqueue.io", "v1alpha1", "jobs"};

const std::vector<std::string> kServices = {
    "admission", "queue", "matcher", "binder", "cleanup", "graph", "visibility"};

constexpr const char* kAccount = R"(apiVersion: v1
kind: ServiceAccount
metadata: {name: mallory, namespace: evil}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mallorys-programs, namespace: evil}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: mallory, namespace: evil}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mallorys-programs, namespace: lab}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: mallory, namespace: evil}]
)";

std::string Pod(const std::string& name, const std::string& annotations, const std::string& more) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","annotations":{{{}}}}},"spec":{{{}
      "restartPolicy":"Never","containers":[{{"name":"main","image":"busybox","resources":
      {{"requests":{{"cpu":"1m","memory":"1Mi"}}}}}}]}}}})",
      name,
      annotations,
      more);
}

std::string Job(const std::string& name,
                const std::string& annotations,
                const std::string& cpu = "100m",
                const std::string& more = "") {
  return fmt::format(
      R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"{}","annotations":{{{}}}}},
      "spec":{{"backoffLimit":0,"template":{{"metadata":{{"annotations":
      {{"fluxqueue.io/run-seconds":"0.2"}}}},"spec":{{{}"restartPolicy":"Never","containers":
      [{{"name":"main","image":"busybox","resources":{{"requests":{{"cpu":"{}"}}}}}}]}}}}}}}})",
      name,
      annotations,
      more,
      cpu);
}

// Eight terms that no other job has.
std::string Affinity(int number) {
  std::string terms;
  for (int term = 0; term < 8; ++term) {
    terms += fmt::format(R"({}{{"key":"k{}-{}.example.com/a","operator":"NotIn","values":["v"]}})",
                         term == 0 ? "" : ",",
                         number,
                         term);
  }
  return fmt::format(
      R"("affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":
      {{"nodeSelectorTerms":[{{"matchExpressions":[{}]}}]}}}}}},)",
      terms);
}

// In milliseconds.
struct Waits {
  int64_t p50 = 0;
  int64_t p99 = 0;
  int64_t longest = 0;
};

void Print(std::string_view neighbour, const Waits& waits) {
  fmt::print(
      "the honest tenant beside {}: half wait {} ms or less, 99 % {} ms, the longest {} ms\n",
      neighbour,
      waits.p50,
      waits.p99,
      waits.longest);
}

// Calls `act` with 0, 1, … at this pace until it is told to stop.
std::jthread EveryOnce(milliseconds pace, std::function<void(int)> act) {
  return std::jthread([pace, act = std::move(act)](const std::stop_token& stop) {
    auto next = std::chrono::steady_clock::now();
    for (int i = 0; !stop.stop_requested(); ++i) {
      act(i);
      next += pace;
      std::this_thread::sleep_until(next);
    }
  });
}

class NeighboursTest : public TenantTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 20});
    if (system_ == nullptr) return;
    const auto made =
        system_->Kubectl({"apply", "-f", "-"}, std::string(kTenants) + "---\n" + kAccount);
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }

  void SetUp() override {
    TenantTest::SetUp();
    auto access = kubernetes::ReadKubeconfig(system_->folder() + "/kubeconfig");
    ASSERT_TRUE(access.ok()) << Message(access.status());
    honest_ = std::make_unique<kubernetes::Client>(*access);
    const auto token =
        system_->Kubectl({"create", "token", "mallory", "--namespace=evil", "--duration=24h"});
    ASSERT_TRUE(token.ok()) << Message(token.status());
    access->tls.certificate.clear();
    access->tls.key.clear();
    access->token = token->substr(0, token->find('\n'));
    mallory_ = std::make_unique<kubernetes::Client>(*access);
  }

  // The honest tenant's times from `kubectl create` to the start while `neighbour` acts.
  Waits WaitBeside(const std::string& prefix,
                   seconds time,
                   const std::function<void(int)>& neighbour) {
    std::map<std::string, int64_t> created;
    {
      const std::jthread beside = EveryOnce(kHostileEvery, neighbour);
      const std::jthread honest = EveryOnce(kHonestEvery, [&](int i) {
        const std::string name = fmt::format("{}-{}", prefix, i);
        created[name] = NowMs();
        const auto made = honest_->Create(kubernetes::kJobs, "e2e", Job(name, ""));
        EXPECT_TRUE(made.ok()) << Message(made.status());
      });
      std::this_thread::sleep_for(time);
    }
    const absl::Status ended =
        system_->WaitFor([&] { return Started(prefix).size() == created.size(); },
                         seconds(60),
                         [&] {
                           return fmt::format("{} of {} honest jobs to have started",
                                              created.size() - Started(prefix).size(),
                                              created.size());
                         });
    EXPECT_TRUE(ended.ok()) << Message(ended);
    std::vector<int64_t> waits;
    for (const auto& [name, start] : Started(prefix)) waits.push_back(start - created[name]);
    std::sort(waits.begin(), waits.end());
    if (waits.empty()) return {};
    return {waits[waits.size() / 2], waits[waits.size() * 99 / 100], waits.back()};
  }

  std::map<std::string, int64_t> Started(const std::string& prefix) {
    const auto rows = system_->Query(
        fmt::format("SELECT j.name, min(e.time_ms) FROM queue.job_events e JOIN queue.jobs j USING "
                    "(job_id) WHERE j.namespace = 'e2e' AND j.name LIKE '{}-%' AND e.state = "
                    "'Running' GROUP BY j.name",
                    prefix));
    std::map<std::string, int64_t> started;
    for (const auto& row : rows.value_or(std::vector<testing::MiniSystem::Row>())) {
      started[row[0]] = std::stoll(row[1]);
    }
    return started;
  }

  // The i-th thing that he does.
  void Attack(int i) {
    const std::string name = fmt::format("attack-{}", i);
    const auto job = [&](const std::string& text) {
      mallory_->Create(kubernetes::kJobs, "lab", text).IgnoreError();
    };
    const auto pod = [&](const std::string& space, const std::string& text) {
      mallory_->Create(kubernetes::kPods, space, text).IgnoreError();
    };
    const auto hold = [&](int number, bool held) {
      const std::string resource = fmt::format("jobs/job-attack-{}/hold", number);
      mallory_
          ->Create({kQueued.group, kQueued.version, resource},
                   "lab",
                   fmt::format(R"({{"spec":{{"held":{}}}}})", held))
          .IgnoreError();
    };
    switch (i % 10) {
      case 0:
        return pod("evil",
                   Pod(name,
                       R"("fluxqueue.io/job-id":"a\u0000","fluxqueue.io/allocation":"1.0.0/1")",
                       R"("nodeName":"nope",)"));
      case 1:
        return pod("evil",
                   Pod(name,
                       R"("fluxqueue.io/job-id":"x","fluxqueue.io/allocation":"4294967295.0.0/2")",
                       R"("nodeName":"node-0",)"));
      case 2:
        return job(Job(name, R"("fluxqueue.io/begin":"+1h")", "100m", Affinity(i)));
      case 3:
        return job(Job(name, "", "1000000"));
      case 4:
        return job(Job(name, R"("fluxqueue.io/queue":"none")"));
      case 5:
        return job(Job(name, fmt::format(R"("note":"{}")", std::string(200'000, 'x'))));
      case 6:
        return pod("lab", Pod(name, "", R"("nodeName":"node-1",)"));
      case 7:
        return mallory_
            ->Patch(kubernetes::kJobs,
                    "lab",
                    fmt::format("attack-{}", i - 5),
                    kubernetes::PatchType::kMerge,
                    R"({"metadata":{"annotations":{"fluxqueue.io/priority":"2147483647"}}})")
            .IgnoreError();
      case 8:
        hold(i - 6, i % 20 == 8);
        return mallory_
            ->List(kQueued, {.space = "lab"}, [](std::string_view) { return absl::OkStatus(); })
            .IgnoreError();
      default:
        return mallory_->Delete(kubernetes::kJobs, "lab", fmt::format("attack-{}", i - 7))
            .IgnoreError();
    }
  }

  // Of each service, as the chart limits it, in MiB.
  static std::map<std::string, double> MemoryLimits() {
    const YAML::Node values =
        YAML::LoadFile(FLUXQUEUE_SOURCE_DIR "/deploy/helm/fluxqueue/values.yaml");
    std::map<std::string, double> limits;
    for (const std::string& service : kServices) {
      const auto bytes = kubernetes::ParseQuantity(
          "memory", values[service]["resources"]["limits"]["memory"].as<std::string>());
      EXPECT_TRUE(bytes.ok()) << service << ": " << Message(bytes.status());
      limits[service] = static_cast<double>(bytes.value_or(0)) / kMiB;
    }
    return limits;
  }

  void TakePeaks(std::map<std::string, double>* peaks) {
    for (const std::string& service : kServices) {
      double& peak = (*peaks)[service];
      peak = std::max(peak, MemoryOf(service));
    }
  }

  double MemoryOf(const std::string& service) {
    int port = 0;
    std::ifstream(fmt::format("{}/config/{}-1.ports", system_->folder(), service)) >> port;
    const auto answer = http::Client({.base_url = fmt::format("http://127.0.0.1:{}", port)})
                            .Do({.target = "/metrics", .accept = "text/plain"});
    EXPECT_TRUE(answer.ok()) << service << ": " << Message(answer.status());
    if (!answer.ok()) return 0;
    constexpr std::string_view kName = "\nprocess_resident_memory_bytes ";
    const size_t at = answer->body.find(kName);
    EXPECT_NE(at, std::string::npos) << service;
    return at == std::string::npos ? 0 : std::stod(answer->body.substr(at + kName.size())) / kMiB;
  }

  static int64_t NowMs() {
    return std::chrono::duration_cast<milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

  std::unique_ptr<kubernetes::Client> honest_;
  std::unique_ptr<kubernetes::Client> mallory_;
};

// Connections to the webhook that say nothing.
class IdleConnections {
 public:
  explicit IdleConnections(const std::string& ports) {
    int health = 0;
    int webhook = 0;
    std::ifstream(ports) >> health >> webhook;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(webhook));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < kIdleConnections; ++i) {
      const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const auto* to = reinterpret_cast<const sockaddr*>(&address);
      if (connect(connection, to, sizeof(address)) == 0) ++connected_;
      sockets_.push_back(connection);
    }
  }
  ~IdleConnections() {
    for (const int connection : sockets_) close(connection);
  }
  IdleConnections(const IdleConnections&) = delete;
  IdleConnections& operator=(const IdleConnections&) = delete;

  int connected() const { return connected_; }

 private:
  std::vector<int> sockets_;
  int connected_ = 0;
};

seconds HostileFor() {
  const char* minutes =
      std::getenv("FLUXQUEUE_ADVERSARY_MINUTES");  // NOLINT(concurrency-mt-unsafe)
  return std::chrono::minutes(minutes == nullptr ? 2 : std::max(1, std::atoi(minutes)));
}

TEST_F(NeighboursTest, AHostileTenantCostsNoMoreThanOneOfPlainPods) {
  const Waits plain = WaitBeside("plain", kPlainFor, [this](int i) {
    mallory_
        ->Create(kubernetes::kPods,
                 "evil",
                 Pod(fmt::format("plain-{}", i), R"("fluxqueue.io/run-seconds":"0.2")", ""))
        .IgnoreError();
  });
  const IdleConnections idle(system_->folder() + "/config/admission-1.ports");
  EXPECT_EQ(idle.connected(), kIdleConnections);
  std::map<std::string, double> peaks;
  std::jthread sampler = EveryOnce(kPeakEvery, [&](int /*i*/) { TakePeaks(&peaks); });
  const Waits hostile = WaitBeside("honest", HostileFor(), [this](int i) { Attack(i); });
  sampler = {};
  Print("plain pods", plain);
  Print("attacks", hostile);
  // A p99 of some hundred waits is one of the longest, which chance moves by as much as the waits
  // of one tenant differ.
  const int64_t chance =
      std::clamp(plain.longest - plain.p50, kLeastChance.count(), kMostChance.count());
  EXPECT_LE(hostile.p99, plain.p99 + plain.p99 / 5 + chance);
  for (const auto& [service, limit] : MemoryLimits()) {
    const double peak = peaks[service];
    fmt::print("{:<10} {:6.0f} MiB of {:.0f} at most\n", service, peak, limit);
    EXPECT_LT(peak, limit) << service;
    EXPECT_GT(peak, 0) << service;
  }
  EXPECT_GT(Count("queue.jobs WHERE namespace = 'lab'"), 0);
  const auto gone =
      AsMallory({"delete", "pods,jobs", "--all", "-n", "evil", "--grace-period=0", "--wait=false"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
}

}  // namespace
}  // namespace fluxqueue::e2e
