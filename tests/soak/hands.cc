#include "tests/soak/hands.h"

#include <array>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/testing/shell.h"

namespace fluxqueue::soak {
namespace {

constexpr int kNodes = 10;
constexpr int kGpuNodes = 2;
constexpr std::array kServices = {
    "admission", "queue", "matcher", "binder", "cleanup", "visibility", "graph"};

std::string Filled(std::string input, const std::string& before) {
  for (size_t at = 0; (at = input.find(kOutputBefore, at)) != std::string::npos;) {
    input.replace(at, kOutputBefore.size(), before);
    at += before.size();
  }
  return input;
}

}  // namespace

absl::Status Hands::Prepare() {
  RETURN_IF_ERROR(MakeNodes());
  RETURN_IF_ERROR(system_->Kubectl({"create", "-f", "-"}, KindsYaml()).status());
  RETURN_IF_ERROR(
      system_->Kubectl({"wait", "crd", "--all", "--for=condition=established"}).status());
  RETURN_IF_ERROR(system_->Kubectl({"apply", "-f", "-"}, QueuesYaml()).status());
  RETURN_IF_ERROR(system_->WaitFor(
      [&] {
        return system_
                   ->QueryOne(
                       "SELECT count(*) FROM queue.queues WHERE queue IN ('patient', "
                       "'urgent')")
                   .value_or("") == "2";
      },
      std::chrono::seconds(30),
      [&] {
        return "queues patient and urgent to be known; it is " +
               system_->QueryOne("SELECT string_agg(queue, ' ') FROM queue.queues").value_or("");
      }));
  for (const char* service : kServices) processes_[service] = ProcessOf(service);
  return absl::OkStatus();
}

std::vector<std::string> Hands::NodeNames() {
  std::vector<std::string> names;
  for (int i = 0; i < kNodes; ++i) names.push_back(fmt::format("node-{}", i));
  for (int i = 0; i < kGpuNodes; ++i) names.push_back(fmt::format("gpu-{}", i));
  return names;
}

absl::Status Hands::MakeNodes() {
  const std::string tool = fmt::format("{}/tools/cluster/nodes", FLUXQUEUE_SOURCE_DIR);
  const std::string kubeconfig = system_->folder() + "/kubeconfig";
  for (const auto& [prefix, count, gpus] :
       {std::tuple("node-", kNodes, 0), std::tuple("gpu-", kGpuNodes, 4)}) {
    const std::vector<std::string> words = {tool,
                                            "--kubeconfig",
                                            kubeconfig,
                                            "--count",
                                            std::to_string(count),
                                            "--prefix",
                                            prefix,
                                            "--gpu",
                                            std::to_string(gpus),
                                            "--zones",
                                            "3"};
    RETURN_IF_ERROR(testing::Run(testing::ShellCommand(words) + " 2>&1").status());
  }
  return absl::OkStatus();
}

std::string Hands::ProcessOf(const std::string& service) const {
  return system_->ProcessOf(service + "-1");
}

absl::Status Hands::KillService(const std::string& service) {
  RETURN_IF_ERROR(system_->KillService(service));
  RETURN_IF_ERROR(system_->StartService(service));
  processes_[service] = ProcessOf(service);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Hands::Run(const Command& command, const std::string& before) {
  switch (command.program) {
    case Command::Program::kMakeNodes:
      RETURN_IF_ERROR(MakeNodes());
      return "";
    case Command::Program::kKillService:
      RETURN_IF_ERROR(KillService(command.words.at(0)));
      return "";
    case Command::Program::kFluxqueue: {
      ASSIGN_OR_RETURN(const testing::ShellResult result, system_->Fluxqueue(command.words));
      if (result.exit_code == 0) return result.output;
      return Unavailable("{}", result.output);
    }
    case Command::Program::kKubectl:
      break;
  }
  return system_->Kubectl(command.words, Filled(command.input, before));
}

absl::Status Hands::Do(const Action& action) {
  std::string before;
  for (const Command& command : CommandsFor(action)) {
    ASSIGN_OR_RETURN(before, Run(command, before));
  }
  return absl::OkStatus();
}

absl::StatusOr<World> Hands::Look() {
  ASSIGN_OR_RETURN(
      const std::string seen,
      system_->Kubectl({"get",
                        "nodes,jobs,cronjobs,pods,deployments,replicasets,statefulsets,jobsets,"
                        "mpijobs",
                        "-n",
                        std::string(kNamespace),
                        "--no-headers",
                        "-o",
                        "custom-columns=" + LookColumns()}));
  return ParseLook(seen);
}

}  // namespace fluxqueue::soak
