// uninstall: Fluxqueue has gone, or goes, and what it holds is let go of. It needs nothing of ours,
// as there may be nothing left: it runs here, with the user's own rights.
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/client.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/kubectl.h"
#include "tools/fluxqueue/release_run.h"
#include "tools/fluxqueue/release_text.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

constexpr kubernetes::Resource kWebhooks{
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", false};
constexpr kubernetes::Resource kPolicies{
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", false};
constexpr kubernetes::Resource kReviews{
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", false};

constexpr const char* kOurs = "app.kubernetes.io/part-of=fluxqueue";
// Those that act on workloads.
constexpr const char* kActing =
    "app.kubernetes.io/part-of=fluxqueue,app.kubernetes.io/component in "
    "(admission,queue,matcher,binder,cleanup)";

struct Options {
  bool release = false;
  bool yes = false;
  bool also_unknown = false;
};

// The cluster that kubectl means, with the credentials that the kubeconfig has itself.
absl::StatusOr<kubernetes::ClusterConfig> ConfigOfKubectl(const ClusterAccess& access) {
  std::vector<std::string> arguments = {"config", "view", "--raw", "--minify", "--flatten"};
  if (!access.kubeconfig.empty()) arguments.push_back("--kubeconfig=" + access.kubeconfig);
  if (!access.context.empty()) arguments.push_back("--context=" + access.context);
  const absl::StatusOr<KubectlAnswer> said = RunKubectl(arguments);
  // As in the image of the command line.
  const bool alone = absl::IsNotFound(said.status()) && access.context.empty();
  if (alone && !access.kubeconfig.empty()) return kubernetes::ReadKubeconfig(access.kubeconfig);
  RETURN_IF_ERROR(said.status());
  const KubectlAnswer& answer = *said;
  if (answer.status != 0) return ErrorOfKubectl(answer.error);
  // In memory: it holds a key.
  const int file = memfd_create("kubeconfig", MFD_CLOEXEC);
  const auto size = static_cast<ssize_t>(answer.output.size());
  const bool written = file >= 0 && write(file, answer.output.data(), answer.output.size()) == size;
  absl::StatusOr<kubernetes::ClusterConfig> config =
      written ? kubernetes::ReadKubeconfig(fmt::format("/proc/self/fd/{}", file))
              : absl::StatusOr<kubernetes::ClusterConfig>(Unavailable("a file in memory"));
  if (file >= 0) close(file);
  if (config.ok()) return config;
  return MakeStatus(config.status().code(),
                    "{}; a kubeconfig with a token does: deploy/docs/uninstall.md says how to make "
                    "one",
                    Message(config.status()));
}

absl::StatusOr<kubernetes::ClusterConfig> FindCluster(const Context& context) {
  const ClusterAccess& access = context.cluster;
  if (!access.kubeconfig.empty() || !access.context.empty() || context.AboutCluster()) {
    return ConfigOfKubectl(access);
  }
  ASSIGN_OR_RETURN(const SystemConfig system, context.LoadConfig("", Needs::kNothing));
  if (!system.has_cluster) {
    return InvalidArgument("{}: kubernetes.kubeconfig is not set: say which cluster it is about",
                           system.file);
  }
  return kubernetes::LoadClusterConfig(system.kubeconfig);
}

// What stands between the workloads and the user who lets go of them.
class Obstacles {
 public:
  Obstacles(kubernetes::Client& client, std::string system)
      : client_(client), system_(std::move(system)) {}

  absl::StatusOr<std::vector<Obstacle>> Find() {
    RETURN_IF_ERROR(FindRights());
    RETURN_IF_ERROR(FindWebhook());
    RETURN_IF_ERROR(
        FindThese({kPolicies, {.labels = kOurs}, "the policies {} refuse it"},
                  "kubectl delete validatingadmissionpolicy,validatingadmissionpolicybinding -l " +
                      std::string(kOurs)));
    RETURN_IF_ERROR(
        FindThese({kubernetes::kPods,
                   {.space = system_, .labels = kActing},
                   "the services run, and would hold or start it again: pods {}"},
                  fmt::format("kubectl delete deployment -n {} -l {}", system_, kOurs)));
    return std::move(found_);
  }

 private:
  struct These {
    kubernetes::Resource resource;
    kubernetes::Selector selector;
    std::string what;
  };

  void Add(std::string what, std::string todo) {
    found_.push_back({.what = std::move(what), .todo = std::move(todo)});
  }
  std::string OrHelm(const std::string& todo) const {
    return fmt::format("helm uninstall fluxqueue -n {} --wait, or {}", system_, todo);
  }

  absl::Status FindRights() {
    for (const auto& [group, resource] : {std::pair{"", "pods"}, std::pair{"batch", "jobs"}}) {
      const json review = {{"apiVersion", "authorization.k8s.io/v1"},
                           {"kind", "SelfSubjectAccessReview"},
                           {"spec",
                            {{"resourceAttributes",
                              {{"verb", "patch"}, {"group", group}, {"resource", resource}}}}}};
      ASSIGN_OR_RETURN(const std::string answer, client_.Create(kReviews, "", review.dump()));
      const json answered = json::parse(answer, nullptr, false);
      if (answered["status"].value("allowed", false)) continue;
      Add(fmt::format("you may not patch {} in all namespaces", resource),
          "do it as an administrator of the cluster (ClusterRole cluster-admin)");
    }
    return absl::OkStatus();
  }

  // One at a URL serves a cluster that the services do not run in.
  absl::Status FindWebhook() {
    bool outside = false;
    std::string names;
    RETURN_IF_ERROR(client_
                        .List(kWebhooks,
                              {.labels = kOurs},
                              [&](std::string_view text) -> absl::Status {
                                const json object = json::parse(text, nullptr, false);
                                for (const json& one : object.value("webhooks", json::array())) {
                                  outside = outside || one["clientConfig"].contains("url");
                                }
                                ASSIGN_OR_RETURN(const auto meta, kubernetes::ParseMeta(text));
                                names += (names.empty() ? "" : " ") + meta.name;
                                return absl::OkStatus();
                              })
                        .status());
    if (names.empty()) return absl::OkStatus();
    const std::string todo = "kubectl delete mutatingwebhookconfiguration " + names;
    Add(fmt::format("the webhook {} holds what is made meanwhile", names),
        outside ? "stop the services, which run outside of this cluster; then " + todo
                : OrHelm(todo));
    return absl::OkStatus();
  }

  absl::Status FindThese(const These& these, const std::string& todo) {
    std::string names;
    RETURN_IF_ERROR(client_
                        .List(these.resource,
                              these.selector,
                              [&](std::string_view text) -> absl::Status {
                                ASSIGN_OR_RETURN(const auto meta, kubernetes::ParseMeta(text));
                                names += (names.empty() ? "" : ", ") + meta.name;
                                return absl::OkStatus();
                              })
                        .status());
    if (!names.empty()) Add(fmt::format(fmt::runtime(these.what), names), OrHelm(todo));
    return absl::OkStatus();
  }

  kubernetes::Client& client_;
  const std::string system_;
  std::vector<Obstacle> found_;
};

void ShowProgress(size_t done, size_t of) {
  fmt::print(stderr, "\r{} of {}{}", Thousands(done), Thousands(of), done == of ? "\n" : "");
}

absl::StatusOr<int> Uninstall(const Context& context, const Options& options) {
  if (!options.release) {
    return InvalidArgument(
        "uninstall: what is to be let go of? Allowed is --release-workloads; the release itself "
        "goes by helm uninstall");
  }
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig config, FindCluster(context));
  kubernetes::Client client(std::move(config));
  ReleaseReport report;
  ASSIGN_OR_RETURN(report.in_the_way, Obstacles(client, context.cluster.space).Find());
  report.really = options.yes && report.in_the_way.empty();
  ReleaseOptions release{.really = report.really, .also_unknown = options.also_unknown};
  if (isatty(STDERR_FILENO) != 0) release.progress = ShowProgress;
  ASSIGN_OR_RETURN(report.all, ReleaseAll(client, release));
  fmt::print("{}",
             context.structured() ? context.Structured(Json(report))
                                  : Text(report, context.wide(), context.colour));
  return report.leaves() ? 1 : 0;
}

}  // namespace

void RegisterUninstall(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("uninstall", "Let go of all that Fluxqueue holds");
  sub->group("Operation");
  const auto options = std::make_shared<Options>();
  sub->add_flag("--release-workloads",
                options->release,
                "Jobs that are suspended by us are resumed, our gates taken away");
  sub->add_flag("--yes", options->yes, "Do it; without this it says what it would do");
  sub->add_flag("--also-unknown",
                options->also_unknown,
                "Also what no FluxJob tells of: it may be held, or have been cancelled");
  sub->footer(
      "Of all namespaces, with your own rights, on this machine: an administrator of the cluster "
      "may. The webhook, the\npolicies and the services have to be gone before; it says what is "
      "left of them. What a user has suspended, or\nsomebody holds, stays as it is, as does what "
      "was cancelled, has failed, was rejected or waits for other jobs. It can\nbe run again at "
      "any "
      "time. Exit status 1: something is left, and the text says what to do about it\n"
      "(deploy/docs/uninstall.md).\n\n"
      "Examples:\n"
      "  helm uninstall fluxqueue -n fluxqueue-system --wait\n"
      "  fluxqueue uninstall --release-workloads          what would be done\n"
      "  fluxqueue uninstall --release-workloads --yes    and it is done");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Uninstall(context, *options); };
  });
}

}  // namespace fluxqueue::cli
