#include <cstdlib>
#include <ctime>
#include <memory>

#include <boost/beast/core/detail/base64.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/labels.h"

#include "manifests.h"
#include "tools/fluxqueue/cluster_http.h"
#include "tools/fluxqueue/doctor.h"
#include "tools/fluxqueue/served_certificate.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

constexpr int kOldestMinor = 30;  // the chart's kubeVersion
constexpr int64_t kMostSkewMs = 5'000;
constexpr int64_t kDayMs = 86'400'000;
constexpr int64_t kSoonMs = 14 * kDayMs;

constexpr const char* kSeeAdmission = "see admission's log, and that the API server can reach it";

constexpr kubernetes::Resource kWebhooks{
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", false};
constexpr kubernetes::Resource kPolicies{
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", false};
constexpr kubernetes::Resource kDefinitions{
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", false};
constexpr kubernetes::Resource kApiServices{"apiregistration.k8s.io", "v1", "apiservices", false};
constexpr kubernetes::Resource kReviews{
    "authorization.k8s.io", "v1", "subjectaccessreviews", false};

std::string FromBase64(const std::string& text) {
  namespace base64 = boost::beast::detail::base64;
  std::string bytes(base64::decoded_size(text.size()), '\0');
  bytes.resize(base64::decode(bytes.data(), text.data(), text.size()).first);
  return bytes;
}

class ClusterDoctor {
 public:
  ClusterDoctor(const kubernetes::ClusterConfig& config,
                std::string system,
                const Clock& clock,
                Findings* findings)
      : http_(MakeClusterHttp(config)),
        client_(config),
        system_(std::move(system)),
        clock_(clock),
        findings_(findings) {}

  void Examine() {
    if (!CheckVersion()) return;
    for (const char* name : {"fluxjobs", "fluxqueues", "fluxwindows"}) {
      CheckThere(kDefinitions,
                 fmt::format("{}.fluxqueue.io", name),
                 "kubectl apply -f k8s/crds, or upgrade the chart");
    }
    for (const char* name : {"fluxqueue-keys",
                             "fluxqueue-taken-in",
                             "fluxqueue-stamps",
                             "fluxqueue-bypass",
                             "fluxqueue-bypass-templates"}) {
      CheckThere(
          kPolicies,
          name,
          "kubectl apply -f k8s/policy.yaml: without it a user can forge our annotations, or "
          "go past the queue");
    }
    for (const char* name : {"fluxqueue-binder", "fluxqueue-binder-binds"}) {
      CheckThere(
          kPolicies,
          name,
          "kubectl apply -f k8s/rbac/binder.yaml: without it a thief of the binder's account "
          "can change every pod and Job");
    }
    CheckWebhook();
    CheckApi();
    CheckDryRun();
    ExamineBypass(client_, findings_);
    CheckRights();
  }

 private:
  int64_t NowMs() const {
    return std::chrono::duration_cast<Millis>(clock_.Now().time_since_epoch()).count();
  }

  bool CheckVersion() {
    const auto answer = http_->Do({.target = "/version"});
    if (!answer.ok() || answer->status != 200) {
      findings_->Fail(
          "Kubernetes",
          answer.ok() ? fmt::format("answers {}", answer->status) : Message(answer.status()),
          "see kubernetes.kubeconfig, and that the API server runs");
      return false;
    }
    const json version = json::parse(answer->body, nullptr, false);
    const std::string text = version.value("gitVersion", "?");
    const int minor = std::atoi(version.value("minor", "0").c_str());
    if (minor < kOldestMinor) {
      findings_->Fail("Kubernetes",
                      "version " + text,
                      fmt::format("upgrade it to 1.{} or newer", kOldestMinor));
    } else {
      findings_->Ok("Kubernetes", "version " + text);
    }
    CheckClock(std::string(http::FindHeader(answer->headers, "Date")));
    return true;
  }

  void CheckClock(const std::string& date) {
    std::tm time{};
    if (strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &time) == nullptr) return;
    const int64_t ahead = static_cast<int64_t>(timegm(&time)) * 1000 - NowMs();
    if (std::abs(ahead) <= kMostSkewMs) {
      return findings_->Ok("the API server's clock", "within a second or so of ours");
    }
    findings_->Warn("the API server's clock",
                    fmt::format("{:+} ms to ours", ahead),
                    "keep the clocks in step (NTP)");
  }

  void CheckThere(const kubernetes::Resource& resource,
                  const std::string& name,
                  const std::string& todo) {
    const absl::Status status = client_.Get(resource, "", name).status();
    if (status.ok()) {
      findings_->Ok(name, "there");
    } else {
      findings_->Fail(name, Message(status), todo);
    }
  }

  void CheckWebhook() {
    const auto text = client_.Get(kWebhooks, "", "fluxqueue");
    if (!text.ok()) {
      return findings_->Fail("webhook",
                             Message(text.status()),
                             "kubectl apply -f k8s/webhook.yaml, or upgrade the chart: without it "
                             "nothing comes into the queue");
    }
    const json first = json::parse(*text)["webhooks"][0];
    const json& config = first["clientConfig"];
    std::string host;
    std::string port = "443";
    if (config.contains("url")) {
      const std::string url = config["url"];
      const size_t begin = url.find("//") + 2;
      host = url.substr(begin, url.find_first_of(":/", begin) - begin);
      const size_t colon = url.find(':', begin);
      if (colon != std::string::npos)
        port = url.substr(colon + 1, url.find('/', colon) - colon - 1);
    } else {
      const json& service = config["service"];
      host = fmt::format(
          "{}.{}.svc", service["name"].get<std::string>(), service["namespace"].get<std::string>());
      port = fmt::format("{}", service.value("port", 443));
    }
    CheckCertificate(host, port, FromBase64(config.value("caBundle", "")));
  }

  void CheckCertificate(const std::string& host,
                        const std::string& port,
                        const std::string& authority) {
    const std::string about = "webhook's certificate";
    const auto served = ReadServedCertificate(host, port, authority);
    if (!served.ok()) {
      return findings_->Fail(about,
                             Message(served.status()),
                             "see that admission runs: in managed namespaces nothing can be made "
                             "while it does not answer");
    }
    const int64_t left = served->not_after_ms - NowMs();
    if (!served->problem.empty() || left <= 0) {
      findings_->Fail(
          about,
          fmt::format("{}:{}: {}", host, port, left <= 0 ? "has expired" : served->problem),
          "the caBundle of the webhook configuration must be of the authority that "
          "signed it; how to make both anew: deploy/docs/runbooks/FluxqueueCertificateExpires.md");
    } else if (left < kSoonMs) {
      findings_->Warn(about,
                      fmt::format("expires in {} days", left / kDayMs),
                      "make a new one before: "
                      "deploy/docs/runbooks/FluxqueueCertificateExpires.md");
    } else {
      findings_->Ok(about, fmt::format("believed, for {} days more", left / kDayMs));
    }
  }

  void CheckApi() {
    const auto text = client_.Get(kApiServices, "", "v1alpha1.visibility.fluxqueue.io");
    if (absl::IsNotFound(text.status())) return;  // it is switched off
    if (!text.ok()) {
      return findings_->Warn(
          "aggregated API", Message(text.status()), "we need get of apiservices to look");
    }
    for (const json& condition : json::parse(*text)["status"].value("conditions", json::array())) {
      if (condition.value("type", "") != "Available") continue;
      if (condition.value("status", "") == "True") {
        return findings_->Ok("aggregated API", "answers");
      }
      return findings_->Fail("aggregated API",
                             condition.value("message", "it does not answer"),
                             "deploy/docs/runbooks/FluxqueueVisibilityAway.md: no namespace ends");
    }
    findings_->Warn("aggregated API", "the API server has not asked it yet", "look again");
  }

  // The API server asks the webhook about a Job that is never made. Suspended, so that neither
  // quotas nor pod security have a say.
  void CheckDryRun() {
    std::string space;
    const auto listed =
        client_.List(kubernetes::kNamespaces,
                     {.labels = fmt::format("{}=true", std::string(kubernetes::kManagedLabel))},
                     [&space](std::string_view text) {
                       if (space.empty()) space = json::parse(text)["metadata"]["name"];
                       return absl::OkStatus();
                     });
    if (!listed.ok() || space.empty()) {
      return findings_->Warn("webhook's answer",
                             "not tried: no namespace has the label fluxqueue.io/managed: \"true\"",
                             "label those whose workloads are to go through the queue");
    }
    const json containers = {{{"name", "c"}, {"image", "none"}}};
    const json pod = {{"spec", {{"restartPolicy", "Never"}, {"containers", containers}}}};
    const json job = {{"apiVersion", "batch/v1"},
                      {"kind", "Job"},
                      {"metadata", {{"generateName", "fluxqueue-doctor-"}}},
                      {"spec", {{"suspend", true}, {"template", pod}}}};
    const auto answer =
        http_->Do({.method = "POST",
                   .target = fmt::format("/apis/batch/v1/namespaces/{}/jobs?dryRun=All", space),
                   .content_type = "application/json",
                   .body = job.dump()});
    if (!answer.ok()) {
      return findings_->Fail("webhook's answer", Message(answer.status()), kSeeAdmission);
    }
    JudgeDryRun(space, *answer);
  }

  void JudgeDryRun(const std::string& space, const http::Response& answer) {
    const json made = json::parse(answer.body, nullptr, false);
    if (answer.status != 201) {
      const std::string message = made.is_object() ? made.value("message", "") : answer.body;
      if (message.find("cannot create resource") == message.npos) {
        return findings_->Fail("webhook's answer", message, kSeeAdmission);
      }
      return findings_->Warn("webhook's answer",
                             fmt::format("not tried: we may not make Jobs in {}", space),
                             "doctor --config FILE with an administrator's kubeconfig tries it");
    }
    if (!made["metadata"].value("labels", json::object()).contains(kubernetes::kHeldLabel)) {
      return findings_->Fail("webhook's answer",
                             fmt::format("a Job of {} is not held", space),
                             "see the selectors of the webhook configuration");
    }
    findings_->Ok("webhook's answer", fmt::format("a Job of {} would be held", space));
  }

  // Every rule of k8s/rbac, asked for the account that it is for.
  void CheckRights() {
    for (const auto& [service, manifest] : kRbac) {
      const std::string account = fmt::format("fluxqueue-{}", service);
      const std::string about = "rights of " + account;
      const std::vector<json> reviews = Reviews(manifest, account);
      if (reviews.empty()) continue;
      const auto missing = Refused(reviews);
      if (!missing.ok()) {
        findings_->Warn(
            about, Message(missing.status()), "we need create of subjectaccessreviews to look");
        return;
      }
      if (missing->empty()) {
        findings_->Ok(about, fmt::format("all {}", reviews.size()));
      } else {
        findings_->Fail(
            about, "missing: " + *missing, "kubectl apply -f k8s/rbac, or upgrade the chart");
      }
    }
  }

  // "patch pods, get nodes": those that the API server would not allow.
  absl::StatusOr<std::string> Refused(const std::vector<json>& reviews) {
    std::string refused;
    for (const json& review : reviews) {
      ASSIGN_OR_RETURN(const std::string answer, client_.Create(kReviews, "", review.dump()));
      if (json::parse(answer)["status"].value("allowed", false)) continue;
      const json& wanted = review["spec"]["resourceAttributes"];
      refused += fmt::format("{}{} {}",
                             refused.empty() ? "" : ", ",
                             wanted["verb"].get<std::string>(),
                             wanted["resource"].get<std::string>());
    }
    return refused;
  }

  std::vector<json> Reviews(const std::string& manifest, const std::string& account) const {
    std::vector<json> reviews;
    for (const YAML::Node& document : YAML::LoadAll(manifest)) {
      if (document["kind"].as<std::string>("") != "ClusterRole") continue;
      for (const auto& rule : document["rules"]) AddReviews(rule, account, &reviews);
    }
    return reviews;
  }

  void AddReviews(const YAML::Node& rule,
                  const std::string& account,
                  std::vector<json>* reviews) const {
    for (const auto& group : rule["apiGroups"]) {
      for (const auto& resource : rule["resources"]) {
        for (const auto& verb : rule["verbs"]) {
          const auto name = resource.as<std::string>();
          const size_t slash = name.find('/');
          json wanted = {{"group", group.as<std::string>()},
                         {"resource", name.substr(0, slash)},
                         {"verb", verb.as<std::string>()}};
          if (slash != std::string::npos) wanted["subresource"] = name.substr(slash + 1);
          reviews->push_back(
              {{"apiVersion", "authorization.k8s.io/v1"},
               {"kind", "SubjectAccessReview"},
               {"spec",
                {{"user", fmt::format("system:serviceaccount:{}:{}", system_, account)},
                 {"resourceAttributes", std::move(wanted)}}}});
        }
      }
    }
  }

  std::unique_ptr<http::Client> http_;
  kubernetes::Client client_;
  const std::string system_;
  const Clock& clock_;
  Findings* const findings_;
};

}  // namespace

void ExamineCluster(const SystemConfig& config,
                    const std::string& system,
                    const Clock& clock,
                    Findings* findings) {
  if (!config.has_cluster) {
    return findings->Warn("Kubernetes",
                          "not looked at: the configuration names no cluster",
                          "set kubernetes.kubeconfig in " + config.file);
  }
  const auto cluster = kubernetes::LoadClusterConfig(config.kubeconfig);
  if (!cluster.ok()) {
    return findings->Fail("Kubernetes", Message(cluster.status()), "see kubernetes.kubeconfig");
  }
  ClusterDoctor(*cluster, system, clock, findings).Examine();
}

}  // namespace fluxqueue::cli
