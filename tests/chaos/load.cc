#include "tests/chaos/load.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <set>

#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/testing/shell.h"
#include "tests/soak/commands.h"
#include "tests/soak/objects.h"

namespace fluxqueue::chaos {
namespace {

using soak::What;
using std::chrono::milliseconds;

constexpr milliseconds kTurn{1000};
constexpr size_t kDeployments = 2;
constexpr int kTurnsOfChange = 10;
constexpr size_t kMostDeletedAtOnce = 20;
// As often as each is to come.
constexpr std::array kKinds = {What::kJob,
                               What::kJob,
                               What::kJob,
                               What::kGangJob,
                               What::kIndexedJob,
                               What::kRoundsJob,
                               What::kPod,
                               What::kPodGang};

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool OfPods(What what) {
  return what == What::kPod || what == What::kPodGang;
}

// "job.batch/job-1 created": "job-1".
std::set<std::string> CreatedNames(const std::string& output) {
  std::set<std::string> names;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(output, '\n'))) {
    const size_t end = line.find(" created");
    if (end == std::string::npos) continue;
    names.insert(line.substr(line.find('/') + 1, end - line.find('/') - 1));
  }
  return names;
}

std::vector<std::string> ObjectsOf(const Made& made) {
  if (!made.gang) return {made.name};
  std::vector<std::string> pods;
  for (int i = 0; i < made.pods; ++i) pods.push_back(fmt::format("{}-{}", made.name, i));
  return pods;
}

}  // namespace

Load::Load(const testing::MiniSystem& system, const LoadOptions& options)
    : options_(options),
      folder_(system.folder()),
      // Straight to the server, and without much patience: it may be what is struck.
      database_(std::make_unique<postgres::Connection>(
          postgres::Options{.dsn = ReadLine(folder_ + "/postgres/dsn"),
                            .application = "load",
                            .schema = "public",
                            .connect_timeout = milliseconds(1000),
                            .statement_timeout = milliseconds(2000)})),
      random_(options.seed),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Load::~Load() {
  Stop();
}

void Load::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

std::vector<Made> Load::InFlight() const {
  const std::lock_guard lock(mutex_);
  std::vector<Made> all;
  for (const auto& [name, made] : in_flight_) all.push_back(made);
  return all;
}

int Load::made() const {
  const std::lock_guard lock(mutex_);
  return made_;
}

void Load::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto next = std::chrono::steady_clock::now() + kTurn;
    ForgetEnded();
    MakeSome();
    if (turns_++ % kTurnsOfChange == 0) {
      ReplaceDeployment();
      DeletePods();
    }
    std::this_thread::sleep_until(next);
  }
}

void Load::MakeSome() {
  const int missing = options_.in_flight - static_cast<int>(InFlight().size());
  std::vector<soak::Action> actions;
  for (int i = 0; i < std::min(missing, options_.at_once); ++i) actions.push_back(Next());
  if (!actions.empty()) Create(actions);
}

soak::Action Load::Next() {
  const What what = kKinds[static_cast<size_t>(Between(0, static_cast<int>(kKinds.size()) - 1))];
  const int number = [this] {
    const std::lock_guard lock(mutex_);
    return ++made_;
  }();
  const bool one = what == What::kJob || what == What::kPod;
  const int least = static_cast<int>(options_.seconds_least * 1000);
  const int most = static_cast<int>(options_.seconds_most * 1000);
  return {.what = what,
          .kind = OfPods(what) ? "Pod" : "Job",
          .name = fmt::format("{}-{}", soak::Name(what), number),
          .pods = one ? 1 : Between(2, 4),
          .rounds = 2,
          .cpu = "50m",
          .seconds = fmt::format("{}ms", Between(least, most))};
}

void Load::Create(const std::vector<soak::Action>& actions) {
  std::string yaml;
  for (const soak::Action& action : actions) yaml += soak::ObjectYaml(action);
  const std::set<std::string> created = CreatedNames(Kubectl({"create", "-f", "-"}, yaml).output);
  const std::lock_guard lock(mutex_);
  for (const soak::Action& action : actions) {
    const Made made{
        .name = action.name,
        .job = !OfPods(action.what),
        .gang = action.what == What::kPodGang,
        .pods = action.what == What::kRoundsJob ? action.pods * action.rounds : action.pods};
    const std::vector<std::string> objects = ObjectsOf(made);
    const bool whole = std::all_of(objects.begin(), objects.end(), [&](const std::string& object) {
      return created.contains(object);
    });
    if (whole) {
      in_flight_[made.name] = made;
    } else if (made.gang) {
      // A gang that lacks a pod waits for it.
      doomed_.insert(doomed_.begin(), objects.begin(), objects.end());
    }
  }
}

void Load::ReplaceDeployment() {
  const soak::Action action{.what = What::kDeployment,
                            .kind = "Deployment",
                            .name = fmt::format("deployment-{}", turns_),
                            .pods = 2,
                            .cpu = "50m"};
  if (Kubectl({"create", "-f", "-"}, soak::ObjectYaml(action)).exit_code != 0) return;
  deployments_.push_back(action.name);
  if (deployments_.size() <= kDeployments) return;
  const auto deleted = Kubectl({"delete", "deployment", deployments_.front(), "--wait=false"});
  if (deleted.exit_code == 0) deployments_.erase(deployments_.begin());
}

void Load::ForgetEnded() {
  std::vector<std::string> names;
  for (const Made& made : InFlight()) names.push_back("'" + made.name + "'");
  if (names.empty()) return;
  std::vector<std::string> ended;
  const absl::Status asked = database_->Query([&](pqxx::transaction_base& tx) {
    ended.clear();
    for (const pqxx::row& row :
         tx.exec(fmt::format("SELECT name FROM queue.jobs WHERE namespace = '{}' AND NOT live AND "
                             "name IN ({})",
                             soak::kNamespace,
                             absl::StrJoin(names, ", ")))) {
      ended.emplace_back(row[0].c_str());
    }
    return absl::OkStatus();
  });
  if (!asked.ok()) return;
  const std::lock_guard lock(mutex_);
  for (const std::string& name : ended) {
    const auto node = in_flight_.extract(name);
    if (node.empty() || node.mapped().job) continue;
    const std::vector<std::string> pods = ObjectsOf(node.mapped());
    doomed_.insert(doomed_.end(), pods.begin(), pods.end());
  }
}

// Jobs go by their TTL. Not many at once: nothing is made meanwhile.
void Load::DeletePods() {
  if (doomed_.empty()) return;
  const auto last =
      doomed_.begin() + static_cast<std::ptrdiff_t>(std::min(doomed_.size(), kMostDeletedAtOnce));
  std::vector<std::string> words = {"delete", "pods", "--ignore-not-found", "--wait=false"};
  words.insert(words.end(), doomed_.begin(), last);
  if (Kubectl(std::move(words)).exit_code == 0) doomed_.erase(doomed_.begin(), last);
}

testing::ShellResult Load::Kubectl(std::vector<std::string> words, const std::string& input) const {
  const std::string file = folder_ + "/load-input";
  std::ofstream(file) << input;
  words.insert(words.end(), {"-n", std::string(soak::kNamespace), "--request-timeout=10s"});
  auto done = testing::RunAny(fmt::format("{} <{} 2>/dev/null",
                                          testing::KubectlCommand(folder_ + "/kubeconfig", words),
                                          testing::ShellQuote(file)));
  return done.ok() ? *std::move(done) : testing::ShellResult{.exit_code = 1, .output = ""};
}

int Load::Between(int least, int most) {
  return least + static_cast<int>(random_() % static_cast<uint64_t>(most - least + 1));
}

}  // namespace fluxqueue::chaos
