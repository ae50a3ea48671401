#include "tools/fluxqueue/release_run.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "libs/base/backoff.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"

namespace fluxqueue::cli {
namespace {

constexpr int kTries = 8;
constexpr Millis kFirstWait{250};
constexpr Millis kLongestWait{10'000};

constexpr const char* kLives = "status.phase!=Succeeded,status.phase!=Failed";

// A policy that was deleted a moment ago: each API server takes a second or two to know.
bool IsPolicyOfOurs(const absl::Status& status) {
  return absl::IsPermissionDenied(status) &&
         Message(status).find("ValidatingAdmissionPolicy 'fluxqueue") != std::string::npos;
}

void Wait(const absl::Status& status, int tries) {
  const Millis own = BackoffDelay(kFirstWait, kLongestWait, tries);
  std::this_thread::sleep_for(std::max(own, kubernetes::RetryAfter(status).value_or(own)));
}

class Run {
 public:
  Run(kubernetes::Client& client, const ReleaseOptions& options)
      : client_(client), options_(options), plan_(options.also_unknown) {}

  absl::StatusOr<std::vector<Released>> All() {
    RETURN_IF_ERROR(ReadFluxJobs());
    ASSIGN_OR_RETURN(std::vector<Released> all, Jobs());
    Apply(&all);
    ASSIGN_OR_RETURN(std::vector<Released> pods, Pods());
    Apply(&pods);
    all.insert(
        all.end(), std::make_move_iterator(pods.begin()), std::make_move_iterator(pods.end()));
    return all;
  }

 private:
  using Sink = std::function<absl::Status(std::string_view)>;

  // Begins again when it expires half way, or the API server has too much to do.
  absl::Status List(const kubernetes::Resource& resource,
                    const kubernetes::Selector& selector,
                    const std::function<void()>& begin,
                    const Sink& item) {
    absl::Status status;
    for (int tries = 1; tries <= kTries; ++tries) {
      begin();
      status = client_.List(resource, selector, item).status();
      if (!IsTransient(status) && !absl::IsOutOfRange(status)) return status;
      Wait(status, tries);
    }
    return status;
  }

  absl::Status ReadFluxJobs() {
    const absl::Status status = List(
        kubernetes::kFluxJobs,
        {},
        [] {},
        [this](std::string_view text) { return plan_.SawFluxJob(text); });
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  // All of them are known before one is judged: their pods are judged by them.
  absl::StatusOr<std::vector<Released>> Jobs() {
    std::vector<Released> found;
    RETURN_IF_ERROR(List(
        kubernetes::kJobs,
        {.labels = std::string(kubernetes::kHeldLabel)},
        [&] { found.clear(); },
        [&](std::string_view text) -> absl::Status {
          ASSIGN_OR_RETURN(const kubernetes::Job job, kubernetes::ParseJob(text));
          plan_.SawJob(job);
          Add(plan_.Judge(job), &found);
          return absl::OkStatus();
        }));
    return found;
  }

  // Also what waits with a hold of ours and without the label, as anybody may write that.
  absl::StatusOr<std::vector<Released>> Pods() {
    std::vector<Released> all;
    for (const kubernetes::Selector& selector :
         {kubernetes::Selector{.labels = std::string(kubernetes::kHeldLabel), .fields = kLives},
          kubernetes::Selector{.labels = "!" + std::string(kubernetes::kHeldLabel),
          .fields = "spec.nodeName=,status.phase=Pending"}}) {
      std::vector<Released> found;
      RETURN_IF_ERROR(List(
          kubernetes::kPods,
          selector,
          [&] { found.clear(); },
          [&](std::string_view text) -> absl::Status {
            ASSIGN_OR_RETURN(const kubernetes::Pod pod, kubernetes::ParsePod(text));
            Add(plan_.Judge(pod), &found);
            return absl::OkStatus();
          }));
      all.insert(
          all.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
    }
    return all;
  }

  static void Add(std::optional<Release> release, std::vector<Released>* to) {
    if (release.has_value()) to->push_back({.release = *std::move(release)});
  }

  void Apply(std::vector<Released>* all) {
    if (!options_.really) return;
    std::vector<Released*> due;
    for (Released& one : *all) {
      if (!one.release.patch.empty()) due.push_back(&one);
    }
    std::atomic<size_t> next = 0;
    std::atomic<size_t> done = 0;
    std::vector<std::jthread> workers;
    for (size_t i = 0; i < std::min(options_.at_once, due.size()); ++i) {
      workers.emplace_back([&] {
        for (size_t mine = next++; mine < due.size(); mine = next++) {
          due[mine]->error = Message(Write(&due[mine]->release));
          ++done;
        }
      });
    }
    for (; done < due.size(); std::this_thread::sleep_for(Millis(100))) {
      options_.progress(done, due.size());
    }
    if (!due.empty()) options_.progress(done, due.size());
  }

  // `release` is what was done in the end.
  absl::Status Write(Release* release) {
    const kubernetes::Resource& resource =
        release->kind == "Job" ? kubernetes::kJobs : kubernetes::kPods;
    absl::Status status;
    for (int tries = 1; tries <= kTries && !release->patch.empty(); ++tries) {
      status = client_
                   .Patch(resource,
                          release->space,
                          release->name,
                          kubernetes::PatchType::kMerge,
                          release->patch)
                   .status();
      if (status.ok() || absl::IsNotFound(status)) return absl::OkStatus();
      if (absl::IsAborted(status)) status = JudgeAgain(resource, release);
      if (status.ok()) continue;
      if (!IsTransient(status) && !IsPolicyOfOurs(status)) return status;
      Wait(status, tries);
    }
    return status;
  }

  absl::Status JudgeAgain(const kubernetes::Resource& resource, Release* release) {
    const absl::StatusOr<std::string> text = client_.Get(resource, release->space, release->name);
    std::optional<Release> judged;
    if (absl::IsNotFound(text.status())) {
      release->patch.clear();
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(text.status());
    if (release->kind == "Job") {
      ASSIGN_OR_RETURN(const kubernetes::Job job, kubernetes::ParseJob(*text));
      judged = plan_.Judge(job);
    } else {
      ASSIGN_OR_RETURN(const kubernetes::Pod pod, kubernetes::ParsePod(*text));
      judged = plan_.Judge(pod);
    }
    if (judged.has_value()) {
      *release = *std::move(judged);
    } else {
      release->patch.clear();
    }
    return absl::OkStatus();
  }

  kubernetes::Client& client_;
  const ReleaseOptions& options_;
  ReleasePlan plan_;
};

}  // namespace

absl::StatusOr<std::vector<Released>> ReleaseAll(kubernetes::Client& client,
                                                 const ReleaseOptions& options) {
  return Run(client, options).All();
}

}  // namespace fluxqueue::cli
