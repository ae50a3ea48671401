#include "services/admission/adapters/second_looks.h"

#include <optional>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::admission {
namespace {

// Names come from all users who may make a Pod.
constexpr size_t kMostAbsent = 1024;

bool Scales(const Verdict& verdict) {
  return verdict.absent.has_value() && verdict.absent->kind == Absent::Kind::kScaled;
}

}  // namespace

SecondLooks::SecondLooks(const FactsCache& facts,
                         kubernetes::Client& client,
                         const WebhookOptions& options,
                         const Clock& clock,
                         AdmissionMetrics& metrics)
    : facts_(facts), client_(client), options_(options), clock_(clock), metrics_(metrics) {}

void SecondLooks::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void SecondLooks::Stop() {
  thread_ = {};
  waiting_.Clear();
  const std::lock_guard lock(mutex_);
  scaling_.clear();
}

bool SecondLooks::IsKnownAbsent(const Absent& absent) const {
  const std::lock_guard lock(mutex_);
  const auto found = absent_.find({absent.kind, absent.name});
  return found != absent_.end() && clock_.Monotonic() < found->second;
}

bool SecondLooks::Decide(Review review, Verdict first, std::function<void(const Verdict*)> then) {
  const bool scales = Scales(first);
  const std::string space = review.space;
  if (scales && !TakePlace(space)) return false;
  Waiting waiting{std::move(review), std::move(first), std::move(then), clock_.Monotonic()};
  if (!waiting_.TryPost(std::move(waiting), 1)) {
    if (scales) GivePlaceBack(space);
    return false;
  }
  metrics_.SecondLooksWaiting(waiting_.size());
  return true;
}

void SecondLooks::Run(const std::stop_token& stop) {
  while (std::optional<Waiting> next = waiting_.TakeOne(stop)) {
    metrics_.SecondLooksWaiting(waiting_.size());
    if (Scales(next->first)) GivePlaceBack(next->review.space);
    if (clock_.Monotonic() - next->since > kPatience) {
      next->then(nullptr);
      continue;
    }
    const Verdict verdict = DecideAgain(std::move(next->review), std::move(next->first));
    next->then(&verdict);
  }
}

bool SecondLooks::TakePlace(const std::string& space) {
  const std::lock_guard lock(mutex_);
  if (scaling_.size() >= kMostScaling || scaling_.count(space) >= kMostScalingInANamespace) {
    return false;
  }
  scaling_.insert(space);
  return true;
}

void SecondLooks::GivePlaceBack(const std::string& space) {
  const std::lock_guard lock(mutex_);
  scaling_.erase(scaling_.find(space));
}

Verdict SecondLooks::DecideAgain(Review review, Verdict verdict) {
  ClusterFacts facts =
      facts_.With([&](const ClusterFacts& known) { return known.For(review.space); });
  // Two things can be missing at once, such as a namespace and its queue; more is not worth the
  // wait.
  for (int look = 0; look < 2 && verdict.absent; ++look) {
    const Absent before = *verdict.absent;
    const bool found = before.kind == Absent::Kind::kScaled
                           ? LookUpScaled(before, &review)
                           : !IsKnownAbsent(before) && LookUp(before, &facts);
    if (!found) break;
    verdict = admission::Decide(review, facts, options_);
    if (verdict.absent == before) break;
  }
  return verdict;
}

template <typename Object>
bool SecondLooks::LookUp(const kubernetes::Resource& resource,
                         const Absent& absent,
                         absl::StatusOr<Object> (*parse)(std::string_view),
                         ClusterFacts* facts) {
  const absl::StatusOr<std::string> text = client_.Get(resource, "", absent.name, kLookTimeout);
  if (absl::IsNotFound(text.status())) {
    NoteAbsent(absent);
    return false;
  }
  absl::StatusOr<Object> object = text.ok() ? parse(*text) : text.status();
  if (!object.ok()) {
    LogWarning("second look failed",
               {{"resource", resource.plural},
                {"name", absent.name},
                {"error", Message(object.status())}});
    return false;
  }
  facts->Upsert(*std::move(object));
  return true;
}

bool SecondLooks::LookUp(const Absent& absent, ClusterFacts* facts) {
  metrics_.SecondLook();
  switch (absent.kind) {
    case Absent::Kind::kNamespace:
      return LookUp(kubernetes::kNamespaces, absent, kubernetes::ParseNamespace, facts);
    case Absent::Kind::kQueue:
      return LookUp(kubernetes::kFluxQueues, absent, kubernetes::ParseFluxQueue, facts);
    case Absent::Kind::kPriorityClass:
      return LookUp(kubernetes::kPriorityClasses, absent, kubernetes::ParsePriorityClass, facts);
    case Absent::Kind::kRuntimeClass:
      return LookUp(kubernetes::kRuntimeClasses, absent, kubernetes::ParseRuntimeClass, facts);
    case Absent::Kind::kScaled:
      break;
  }
  return false;
}

bool SecondLooks::LookUpScaled(const Absent& absent, Review* review) {
  metrics_.SecondLook();
  const kubernetes::Resource resource{
      absent.scaled->group, "v1", absent.scaled->resource, /*namespaced=*/true};
  absl::StatusOr<std::string> text =
      client_.Get(resource, review->space, absent.name, kLookTimeout);
  if (!text.ok() && !absl::IsNotFound(text.status())) {
    LogWarning("what is scaled cannot be looked up",
               {{"resource", absent.scaled->resource},
                {"namespace", review->space},
                {"name", absent.name},
                {"error", Message(text.status())}});
    return false;
  }
  review->scaled = text.ok() ? *std::move(text) : "";
  return true;
}

void SecondLooks::NoteAbsent(const Absent& absent) {
  const std::lock_guard lock(mutex_);
  if (absent_.size() >= kMostAbsent) absent_.clear();
  absent_[{absent.kind, absent.name}] = clock_.Monotonic() + kAbsentFor;
}

}  // namespace fluxqueue::admission
