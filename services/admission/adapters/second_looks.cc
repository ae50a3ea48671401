#include "services/admission/adapters/second_looks.h"

#include <optional>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

// Names come from all users who may make a Pod.
constexpr size_t kMostAbsent = 1024;
// Several things can be missing at once: a namespace, its queue, what has the group's size. More is
// not worth the wait.
constexpr int kMostLooks = 3;

bool IsUnwatched(const Verdict& verdict) {
  return verdict.absent.has_value() && (verdict.absent->kind == Absent::Kind::kScaled ||
                                        verdict.absent->kind == Absent::Kind::kGroup ||
                                        verdict.absent->kind == Absent::Kind::kPlaces);
}

std::string SizeKey(const Absent& absent, const std::string& space) {
  return absent.group->resource().Path(space, absent.name);
}

// What an answer to a look for it says; unset: nothing.
std::optional<absl::StatusOr<uint32_t>> SizeBy(const absl::StatusOr<std::string>& object,
                                               const Absent& absent) {
  const std::string what = fmt::format("{} '{}'", absent.group->plural, absent.name);
  if (object.ok()) {
    const absl::StatusOr<uint32_t> size = absent.group->SizeIn(*object);
    if (size.ok()) return size;
    return Annotate(size.status(), what);
  }
  if (!absl::IsNotFound(object.status())) return std::nullopt;
  // The API server names an object that is not there, and knows nothing of one whose kind is not.
  const bool installed =
      Message(object.status()).find(fmt::format("\"{}\" not found", absent.name)) !=
      std::string::npos;
  if (!installed) return 0U;
  return InvalidArgument(
      "{}: it says of how many pods their group is, and is not there: make it before its pods, or "
      "leave out the labels that name it",
      what);
}

}  // namespace

SecondLooks::SecondLooks(const FactsCache& facts,
                         kubernetes::Cluster& cluster,
                         const WebhookOptions& options,
                         const Clock& clock,
                         AdmissionMetrics& metrics)
    : facts_(facts), cluster_(cluster), options_(options), clock_(clock), metrics_(metrics) {}

void SecondLooks::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void SecondLooks::Stop() {
  thread_ = {};
  waiting_.Clear();
  const std::lock_guard lock(mutex_);
  unwatched_.clear();
  awaited_.clear();
}

bool SecondLooks::IsKnownAbsent(const Absent& absent) const {
  const std::lock_guard lock(mutex_);
  const auto found = absent_.find({absent.kind, absent.name});
  return found != absent_.end() && clock_.Monotonic() < found->second;
}

bool SecondLooks::Decide(Review review, Verdict first, std::function<void(const Verdict*)> then) {
  const bool unwatched = IsUnwatched(first);
  const std::string space = review.space;
  const std::optional<Absent> absent = first.absent;
  if (unwatched && !TakePlace(*absent, space)) return false;
  Waiting waiting{std::move(review), std::move(first), std::move(then), clock_.Monotonic()};
  if (!waiting_.TryPost(std::move(waiting), 1)) {
    if (unwatched) GivePlaceBack(*absent, space);
    return false;
  }
  metrics_.SecondLooksWaiting(waiting_.size());
  return true;
}

void SecondLooks::Run(const std::stop_token& stop) {
  while (std::optional<Waiting> next = waiting_.TakeOne(stop)) {
    metrics_.SecondLooksWaiting(waiting_.size());
    if (IsUnwatched(next->first)) GivePlaceBack(*next->first.absent, next->review.space);
    if (clock_.Monotonic() - next->since > kPatience) {
      next->then(nullptr);
      continue;
    }
    const Verdict verdict = DecideAgain(std::move(next->review), std::move(next->first));
    next->then(&verdict);
  }
}

bool SecondLooks::TakePlace(const Absent& absent, const std::string& space) {
  const bool shares = absent.kind == Absent::Kind::kGroup;
  const std::string key = shares ? SizeKey(absent, space) : "";
  const std::lock_guard lock(mutex_);
  if (shares && awaited_.contains(key)) {
    ++awaited_[key];
    return true;
  }
  if (unwatched_.size() >= kMostUnwatched ||
      unwatched_.count(space) >= kMostUnwatchedInANamespace) {
    return false;
  }
  unwatched_.insert(space);
  if (shares) awaited_[key] = 1;
  return true;
}

void SecondLooks::GivePlaceBack(const Absent& absent, const std::string& space) {
  const std::lock_guard lock(mutex_);
  if (absent.kind == Absent::Kind::kGroup) {
    const auto waiting = awaited_.find(SizeKey(absent, space));
    if (--waiting->second > 0) return;
    awaited_.erase(waiting);
  }
  unwatched_.erase(unwatched_.find(space));
}

Verdict SecondLooks::DecideAgain(Review review, Verdict verdict) {
  ClusterFacts facts =
      facts_.With([&](const ClusterFacts& known) { return known.For(review.space); });
  for (int look = 0; look < kMostLooks && verdict.absent; ++look) {
    const Absent before = *verdict.absent;
    bool found = false;
    if (before.kind == Absent::Kind::kScaled) {
      found = LookUpScaled(before, &review);
    } else if (before.kind == Absent::Kind::kGroup) {
      found = Recall(before, &review) || LookUpGroup(before, &review);
    } else if (before.kind == Absent::Kind::kPlaces) {
      found = LookUpPlaces(before, &review);
    } else {
      found = !IsKnownAbsent(before) && LookUp(before, &facts);
    }
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
  const absl::StatusOr<std::string> text = cluster_.Get(resource, "", absent.name, kLookTimeout);
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
    case Absent::Kind::kGroup:
    case Absent::Kind::kPlaces:
      break;
  }
  return false;
}

bool SecondLooks::LookUpScaled(const Absent& absent, Review* review) {
  const kubernetes::Resource resource{
      absent.scaled->group, "v1", absent.scaled->resource, /*namespaced=*/true};
  review->scaled = TextOf(resource, absent, review->space);
  return review->scaled.has_value();
}

bool SecondLooks::LookUpPlaces(const Absent& absent, Review* review) {
  const kubernetes::Resource resource =
      absent.group == nullptr ? kubernetes::kPods : absent.group->resource();
  review->places = TextOf(resource, absent, review->space);
  return review->places.has_value();
}

std::optional<std::string> SecondLooks::TextOf(const kubernetes::Resource& resource,
                                               const Absent& absent,
                                               const std::string& space) {
  metrics_.SecondLook();
  absl::StatusOr<std::string> text = cluster_.Get(resource, space, absent.name, kLookTimeout);
  if (!text.ok() && !absl::IsNotFound(text.status())) {
    LogWarning("second look failed",
               {{"resource", resource.plural},
                {"namespace", space},
                {"name", absent.name},
                {"error", Message(text.status())}});
    return std::nullopt;
  }
  return text.ok() ? *std::move(text) : "";
}

bool SecondLooks::LookUpGroup(const Absent& absent, Review* review) {
  metrics_.SecondLook();
  const kubernetes::Resource resource = absent.group->resource();
  const auto object = cluster_.Get(resource, review->space, absent.name, kLookTimeout);
  review->group_size = SizeBy(object, absent);
  if (!review->group_size.has_value()) {
    LogWarning("what has a group's size cannot be looked up",
               {{"resource", absent.group->plural},
                {"namespace", review->space},
                {"name", absent.name},
                {"error", Message(object.status())}});
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (sizes_.size() >= kMostAbsent) sizes_.clear();
  sizes_.insert_or_assign(
      SizeKey(absent, review->space),
      GroupSize{*review->group_size,
                clock_.Monotonic() + (review->group_size->ok() ? kSizeFor : kAbsentFor)});
  return true;
}

bool SecondLooks::Recall(const Absent& absent, Review* review) const {
  if (absent.kind != Absent::Kind::kGroup) return false;
  const std::lock_guard lock(mutex_);
  const auto found = sizes_.find(SizeKey(absent, review->space));
  if (found == sizes_.end() || clock_.Monotonic() >= found->second.until) return false;
  review->group_size = found->second.size;
  return true;
}

void SecondLooks::NoteAbsent(const Absent& absent) {
  const std::lock_guard lock(mutex_);
  if (absent_.size() >= kMostAbsent) absent_.clear();
  absent_[{absent.kind, absent.name}] = clock_.Monotonic() + kAbsentFor;
}

}  // namespace fluxqueue::admission
