// Pods that are one gang: they wait for each other, and are one job.
#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/kubernetes/group.h"
#include "libs/kubernetes/submission.h"
#include "services/admission/domain/tracker.h"
#include "services/admission/domain/workload_messages.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

using kubernetes::GroupMember;

// What a Sketch.group says.
struct GroupKey {
  std::string_view space;
  std::string name;
  uint32_t size = 0;  // 0: it says none
  bool or_each = false;
  bool at_first = false;
  std::string_view user;

  // The same group, whatever its size is now.
  std::string AnySize() const { return fmt::format("{}/{}/{}", space, name, user); }
  // What the keys of all groups of that name begin with.
  std::string Prefix() const { return fmt::format("{}/{}/", space, name); }
};

GroupKey Read(std::string_view group) {
  const size_t record = group.find('/') + 1;
  const size_t size = group.find('/', record) + 1;
  const size_t user = group.find('/', size) + 1;
  if (record == 0 || size == 0 || user == 0) return {};
  const auto named = kubernetes::ParseGroup(group.substr(record, user - 1 - record));
  if (!named) return {};
  return {.space = group.substr(0, record - 1),
          .name = named->name,
          .size = named->size,
          .or_each = named->or_each,
          .at_first = named->at_first,
          .user = group.substr(user)};
}

// Where a group cannot be queued, this many pods of it may wait beside two gangs.
constexpr size_t kMostBehind = 64;

// A pod that no hold of ours is on, or one of somebody else, is not ours to bind (yet).
bool IsReady(const kubernetes::Pod& pod) {
  return !pod.Bound() && kubernetes::ForeignGate(pod.spec) == nullptr &&
         kubernetes::CarriedHold(pod.spec).has_value();
}

// It is bound, or released to kube-scheduler, as one of this gang.
bool HasStarted(const kubernetes::Pod& pod, const std::string& gang) {
  if (!pod.Bound() && kubernetes::CarriedHold(pod.spec).has_value()) return false;
  // hint: the policies let only the binder write it.
  return pod.meta.Annotation(kubernetes::kJobIdAnnotation) == gang;
}

}  // namespace

Tracker::Group::Place Tracker::PlaceOf(const GroupMember& member) {
  return {member.created_ms, member.name, member.uid};
}

absl::StatusOr<Tracker::Wish> Tracker::WishOf(const std::string& space,
                                              const std::string& name,
                                              const std::vector<const GroupMember*>& members) {
  Wish wish;
  ASSIGN_OR_RETURN(wish.submission, kubernetes::SubmissionOf(space, name, members, &wish.demand));
  const GroupMember& leader = *members.front();
  wish.topology = leader.keys.topology.value_or(kubernetes::Topology());
  wish.qos = leader.keys.qos;
  wish.admitted_to = leader.admitted_to;
  for (const GroupMember* member : members) {
    wish.cancel = wish.cancel || member->keys.cancel;
    wish.retry += member->keys.retry;
    if (member->admitted_to != wish.admitted_to) wish.admitted_to.clear();
  }
  wish.ready = true;
  wish.nobodys = leader.user.empty();
  return wish;
}

// It is no job: it says who makes the pods.
void Tracker::ObserveGroupJob(const Observation& seen, TrackerOutputs* out) {
  const Sketch& sketch = seen.sketch;
  if (!sketch.held || sketch.ended) {
    Forget(sketch.uid, out);
    return;
  }
  Entry* known = entries_.EditInPassing(sketch.uid);
  if (known != nullptr && known->digest == sketch.digest) {
    known->list = lists_[0];
    if (seen.look == 0) known->told = last_look_;
    return;
  }
  const absl::StatusOr<kubernetes::Job> job = kubernetes::ParseJob(seen.object);
  if (!job.ok()) {
    Refuse(sketch, Message(job.status()), out);
    return;
  }
  Entry& entry = EditSeen(sketch);
  entry.refusal.clear();
  entry.group = sketch.group;
  // hint: the policies let only the webhook write it.
  entry.admitted_to = job->meta.Annotation(kubernetes::kAdmittedToAnnotation);
  const Boxed<Early> early = std::exchange(entry.early, {});
  if (!early) return;
  for (const auto& [uid, name] : early->members) {
    out->fetches.push_back({WorkloadKind::kPod, sketch.space, name, uid, ++last_look_});
  }
}

void Tracker::AwaitJob(const Sketch& pod) {
  const Entry* job = entries_.Find(pod.controller_job);
  if (job != nullptr && job->digest != 0) return;
  EditUnseenJob(pod).members.emplace(pod.uid, pod.name);
  EditSeen(pod).digest = 0;
}

std::string Tracker::GroupOf(const Sketch& sketch, const Entry* known) const {
  if (known != nullptr && !known->group.empty()) return known->group;
  if (sketch.controller_job.empty()) return sketch.group;
  const Entry* job = sketch.group.empty() ? nullptr : entries_.Find(sketch.controller_job);
  return job != nullptr && job->space == sketch.space ? job->group : "";
}

Tracker::Maker Tracker::MakerOf(const Sketch& sketch, const std::string& group) const {
  const Entry* job = entries_.Find(sketch.controller_job);
  const bool known = job != nullptr && job->admitted_to;
  return {std::string(Read(group).user), known ? *job->admitted_to : ""};
}

absl::StatusOr<Tracker::Wish> Tracker::ReadWish(const Observation& seen,
                                                const std::string& group,
                                                const ClusterFacts& facts) const {
  ASSIGN_OR_RETURN(Wish wish, ReadWish(seen, facts));
  if (group.empty() || seen.sketch.controller_job.empty()) return wish;
  const Maker maker = MakerOf(seen.sketch, group);
  wish.submission.set_user(maker.user);
  wish.admitted_to = maker.admitted_to;
  wish.nobodys = maker.user.empty();
  return wish;
}

absl::StatusOr<GroupMember> Tracker::ReadMember(const Sketch& sketch,
                                                const std::string& group,
                                                const absl::StatusOr<kubernetes::Pod>& pod) const {
  RETURN_IF_ERROR(pod.status());
  ASSIGN_OR_RETURN(GroupMember member, kubernetes::MemberOf(*pod));
  if (sketch.controller_job.empty()) return member;
  Maker maker = MakerOf(sketch, group);
  member.user = std::move(maker.user);
  member.admitted_to = std::move(maker.admitted_to);
  return member;
}

void Tracker::ObserveMember(const Observation& seen,
                            const std::string& key,
                            const ClusterFacts& facts,
                            TrackerOutputs* out) {
  const Sketch& sketch = seen.sketch;
  const Entry* known = entries_.Find(sketch.uid);
  if (!sketch.held || sketch.ended) {
    // One that was never bound is missed, however it ended.
    const bool ended = sketch.ended && sketch.bound;
    if (ended && known != nullptr && !known->gang.empty()) NoteStarted(sketch.uid);
    MemberOver(sketch.uid, ended, out);
    return;
  }
  if (known == nullptr && kubernetes::IsSystemNamespace(sketch.space)) return;
  if (known != nullptr && known->digest == sketch.digest && known->bound == sketch.bound) {
    Entry& same = *entries_.EditInPassing(sketch.uid);
    same.list = lists_[1];
    if (seen.look == 0) same.told = last_look_;
    return;
  }
  const auto pod = kubernetes::ParsePod(seen.object);
  const bool of_gang = known != nullptr && !known->gang.empty();
  if (pod.ok() && !of_gang && (sketch.going || !IsReady(*pod))) {
    StopWaiting(sketch.uid, out);
    return;
  }
  absl::StatusOr<GroupMember> member = ReadMember(sketch, key, pod);
  if (member.ok() && !of_gang) {
    if (auto problem = WaitProblem(key, *pod, facts)) member = InvalidArgument("{}", *problem);
  }
  const bool started = pod.ok() && of_gang && HasStarted(*pod, known->gang);
  if (started) NoteStarted(sketch.uid);
  if (!member.ok()) {
    StopWaiting(sketch.uid, out);
    Refuse(sketch, Message(member.status()), out);
    return;
  }
  Entry& entry = EditSeen(sketch);
  // What the binder has made of it is our answer, no new question.
  if (started && entry.member.has_value()) member->demand = entry.member->demand;
  const bool waited = entry.member.has_value();
  const bool news = seen.look != 0 || !waited || *entry.member != *member;
  entry.refusal.clear();
  entry.group = key;
  entry.bound = sketch.bound;
  entry.started = started;
  entry.member = *std::move(member);
  if (of_gang) {
    const std::string id = entry.gang;
    if (!key.empty()) groups_.Edit(key).gangs.insert(id);
    if (news) UpdateGang(id, facts, out);
    return;
  }
  Group& group = groups_.Edit(key);
  if (!waited) group.incomplete = false;
  group.waiting.insert(PlaceOf(*entry.member));
  if (const GroupKey read = Read(key); read.at_first && SomeRun(read.Prefix(), read.AnySize())) {
    PlaceAlone(key, out);
    return;
  }
  // Those that wait behind a gang that is refused change nothing for it.
  const Entry* refused = group.refused.empty() ? nullptr : entries_.Find(group.refused);
  if (refused == nullptr || refused->pods.contains(sketch.uid)) Gather(key, facts, out);
}

std::optional<std::string> Tracker::WaitProblem(const std::string& key,
                                                const kubernetes::Pod& pod,
                                                const ClusterFacts& facts) const {
  const std::string& name = pod.meta.namespace_name;
  const kubernetes::Namespace* known = facts.FindNamespace(name);
  const kubernetes::Namespace space = known != nullptr ? *known : kubernetes::Namespace{name, {}};
  // hint: a user's own word, which only takes his pod out of the queue.
  const auto declined = kubernetes::Declined(pod.meta.labels, {}, space);
  if (declined) return fmt::format("it is not taken in: {}", declined->message);
  const Entry* entry = entries_.Find(pod.meta.uid);
  const Group* group = groups_.Find(key);
  const bool waits = entry != nullptr && entry->member.has_value();
  const size_t most = size_t{2} * Read(key).size + kMostBehind;
  if (waits || group == nullptr || group->waiting.size() < most) return std::nullopt;
  return fmt::format(
      "{} pods of its group wait, and none of them can be queued; allowed are {}: see their Events",
      group->waiting.size(),
      most);
}

void Tracker::NoteStarted(const std::string& uid) {
  const Entry& known = *entries_.Find(uid);
  if (!known.started) entries_.Edit(uid).started = true;
  const std::string& gang = known.gang;
  if (!entries_.Find(gang)->started) entries_.Edit(gang).started = true;
}

void Tracker::StopWaiting(const std::string& uid, TrackerOutputs* out) {
  const Entry* known = entries_.Find(uid);
  if (known == nullptr || !known->gang.empty() || !known->member.has_value()) return;
  Group& group = groups_.Edit(known->group);
  group.waiting.erase(PlaceOf(*known->member));
  entries_.Edit(uid).member.reset();
  const Entry* refused = group.refused.empty() ? nullptr : entries_.Find(group.refused);
  if (refused == nullptr || !refused->pods.contains(uid)) return;
  Forget(std::exchange(group.refused, {}), out);
  LookAtFirst(group, out);
}

void Tracker::Gather(const std::string& key, const ClusterFacts& facts, TrackerOutputs* out) {
  const GroupKey read = Read(key);
  Group& group = groups_.Edit(key);
  if (read.size == 0 || group.waiting.size() < read.size) return;
  std::vector<const GroupMember*> members;
  for (const auto& [created_ms, name, uid] : group.waiting) {
    if (members.size() == read.size) break;
    members.push_back(&*entries_.Find(uid)->member);
  }
  kubernetes::SortBySlot(&members);
  Sketch sketch;
  sketch.kind = WorkloadKind::kGroup;
  sketch.space = read.space;
  sketch.name = read.name;
  sketch.uid = kubernetes::GroupJobId(members);
  std::vector<std::string> pods;
  for (const GroupMember* member : members) pods.push_back(member->uid);
  if (!group.refused.empty() && group.refused != sketch.uid) {
    Forget(std::exchange(group.refused, {}), out);
  }
  entries_.Edit(sketch.uid).pods = {pods.begin(), pods.end()};
  group.refused = sketch.uid;
  absl::StatusOr<Wish> wish = WishOf(sketch.space, sketch.name, members);
  if (!wish.ok() && read.or_each) {
    PlaceAlone(key, out);
    return;
  }
  if (!Submit(sketch, std::move(wish), facts, out)) {
    // Each by itself may do.
    if (read.at_first) PlaceAlone(key, out);
    return;
  }
  group.refused.clear();
  group.gangs.insert(sketch.uid);
  for (const std::string& pod : pods) {
    Entry& entry = entries_.Edit(pod);
    entry.gang = sketch.uid;
    entry.refusal.clear();
    group.waiting.erase(PlaceOf(*entry.member));
  }
  entries_.Edit(sketch.uid).row->pods = std::move(pods);
  if (group.waiting.size() >= read.size) LookAtFirst(group, out);
}

void Tracker::UpdateGang(const std::string& id, const ClusterFacts& facts, TrackerOutputs* out) {
  const Entry* job = entries_.Find(id);
  std::vector<const GroupMember*> members;
  bool all_wait = job->pods.size() == job->row->pods.size();
  for (const std::string& pod : job->row->pods) {  // its slots stay numbered as they are
    if (!job->pods.contains(pod)) continue;
    const Entry* entry = entries_.Find(pod);
    if (entry == nullptr || !entry->member.has_value()) return;  // not seen since a restart
    members.push_back(&*entry->member);
    all_wait = all_wait && !entry->started;
  }
  // What they ask for is settled, and may not be known any more.
  std::vector<GroupMember> settled;
  if (!all_wait) {
    for (const GroupMember* member : members) settled.push_back(*member);
    for (size_t i = 0; i < settled.size(); ++i) {
      settled[i].demand = {};
      members[i] = &settled[i];
    }
  }
  Sketch sketch;
  sketch.kind = WorkloadKind::kGroup;
  sketch.space = job->space;
  sketch.name = job->name;
  sketch.uid = id;
  absl::StatusOr<Wish> wish = WishOf(sketch.space, sketch.name, members);
  if (wish.ok()) wish->respecify = all_wait;
  Update(sketch, std::move(wish), facts, out);
}

void Tracker::MemberOver(const std::string& uid, bool ended, TrackerOutputs* out) {
  const Entry* known = entries_.Find(uid);
  if (known == nullptr) return;
  StopWaiting(uid, out);
  const std::string id = known->gang;
  const std::string key = known->group;
  const bool unseen = !known->member.has_value();
  const Leaver leaver = {.uid = uid,
                         .key = key,
                         .ended = ended,
                         .started = known->started || unseen,
                         .bound = known->bound || unseen};
  Forget(uid, out);
  if (!id.empty()) PodLeft(id, leaver, out);
  DropIfEmpty(key);
}

void Tracker::PodLeft(const std::string& id, const Leaver& pod, TrackerOutputs* out) {
  Entry& job = entries_.Edit(id);
  job.pods.erase(pod.uid);
  job.lost = job.lost || (!pod.ended && !(pod.started && pod.bound));
  if (job.pods.empty()) {
    // Of a gang of which each pod was bound cleanup sees the end.
    if (!job.started || job.lost) {
      Withdraw(id, "pods of the group were deleted, or are held no longer", out);
    }
    if (!pod.key.empty()) groups_.Edit(pod.key).gangs.erase(id);
    Forget(id, out);
    return;
  }
  bool any_started = false;
  bool any_waits = false;
  for (const std::string& other : job.pods) {
    const Entry* entry = entries_.Find(other);
    const bool unseen = entry == nullptr || !entry->member.has_value();
    any_started = any_started || unseen || entry->started;
    any_waits = any_waits || (!unseen && !entry->started);
  }
  // It cannot start as a whole any more.
  if (!pod.ended && (pod.started ? any_waits : !any_started)) Disband(id, out);
}

// Those of its pods that have not started wait for company once more; the others are stopped.
void Tracker::Disband(const std::string& id, TrackerOutputs* out) {
  Withdraw(id, "a pod of the group was deleted before the group had started", out);
  const std::set<std::string> pods = entries_.Find(id)->pods;
  Forget(id, out);
  std::string first;
  std::set<std::string> at_first;
  for (const std::string& pod : pods) {
    const Entry* known = entries_.Find(pod);
    if (known == nullptr) continue;
    const std::string key = known->group;
    if (!key.empty()) groups_.Edit(key).gangs.erase(id);
    if (known->started) {
      Forget(pod, out);
      continue;
    }
    Entry& entry = entries_.Edit(pod);
    entry.gang.clear();
    entry.digest = 0;
    if (!entry.member.has_value() || key.empty()) continue;
    Group& group = groups_.Edit(key);
    group.waiting.insert(PlaceOf(*entry.member));
    group.incomplete = false;
    first = pod;
    if (Read(key).at_first) at_first.insert(key);
  }
  // Its controller may go on only once those that it makes now run.
  for (const std::string& key : at_first) PlaceAlone(key, out);
  if (!at_first.empty()) return;
  if (!first.empty()) Look(first, *entries_.Find(first), out);
}

void Tracker::DropIfEmpty(const std::string& key) {
  const Group* group = key.empty() ? nullptr : groups_.Find(key);
  if (group != nullptr && group->waiting.empty() && group->gangs.empty() && group->alone.empty()) {
    groups_.Erase(key);
  }
}

void Tracker::StandsAlone(const std::string& uid, const std::string& group) {
  Entry& entry = entries_.Edit(uid);
  entry.alone = true;
  entry.group = group;
  groups_.Edit(group).alone.insert(uid);
}

// Some pod of it has started: those that come now take the place of others.
bool Tracker::Runs(const Group& group) const {
  return !group.alone.empty() || HasStartedGang(group);
}

bool Tracker::HasStartedGang(const Group& group) const {
  return std::any_of(group.gangs.begin(), group.gangs.end(), [this](const std::string& id) {
    const Entry* job = entries_.Find(id);
    return job != nullptr && job->started;
  });
}

bool Tracker::SomeRun(const std::string& prefix, const std::string& any_size) const {
  const auto& all = groups_.map();
  for (auto group = all.lower_bound(prefix); group != all.end() && group->first.starts_with(prefix);
       ++group) {
    if (Read(group->first).AnySize() != any_size) continue;
    const std::set<std::string>& alone = group->second.alone;
    const bool any_alone = std::any_of(alone.begin(), alone.end(), [this](const std::string& pod) {
      const Entry* entry = entries_.Find(pod);
      return entry != nullptr && entry->bound;
    });
    if (any_alone || HasStartedGang(group->second)) return true;
  }
  return false;
}

void Tracker::LookAtFirst(const Group& group, TrackerOutputs* out) {
  if (group.waiting.empty()) return;
  const std::string& pod = std::get<2>(*group.waiting.begin());
  Entry& entry = entries_.Edit(pod);
  entry.digest = 0;
  Look(pod, entry, out);
}

bool Tracker::HasIncompleteGroups() const {
  return std::any_of(groups_.map().begin(), groups_.map().end(), [](const auto& group) {
    return !group.second.waiting.empty() && group.second.refused.empty();
  });
}

void Tracker::LookAtGroups(TrackerOutputs* out) {
  std::vector<std::string> late;
  std::unordered_set<std::string> running;  // of any size
  for (const auto& [key, group] : groups_.map()) {
    if (!group.waiting.empty() && group.refused.empty()) late.push_back(key);
    if (Runs(group)) running.insert(Read(key).AnySize());
  }
  for (const std::string& key : late) {
    Group& group = groups_.Edit(key);
    if (!std::exchange(group.incomplete, true)) continue;
    const GroupKey read = Read(key);
    if (group.waiting.size() >= read.size) {
      LookAtFirst(group, out);
    } else if (read.or_each || running.contains(read.AnySize())) {
      PlaceAlone(key, out);
    } else {
      TellIncomplete(key, out);
    }
  }
}

void Tracker::PlaceAlone(const std::string& key, TrackerOutputs* out) {
  if (std::string& refused = groups_.Edit(key).refused; !refused.empty()) {
    Forget(std::exchange(refused, {}), out);
  }
  for (const auto& [created_ms, name, pod] : std::exchange(groups_.Edit(key).waiting, {})) {
    StandsAlone(pod, key);
    Entry& entry = entries_.Edit(pod);
    entry.member.reset();
    entry.digest = 0;
    Look(pod, entry, out);
  }
}

void Tracker::TellIncomplete(const std::string& key, TrackerOutputs* out) {
  const GroupKey read = Read(key);
  Group& group = groups_.Edit(key);
  std::string message = fmt::format(
      "group {} has {} of its {} pods; it is queued once the others are there, and holds nothing "
      "until then. Where each pod is made only once another one is ready, they cannot be a gang: "
      "annotate them {}: x, {}: 1",
      read.name,
      group.waiting.size(),
      read.size,
      kubernetes::kGroupNameKey,
      kubernetes::kGroupSizeKey);
  if (group.told == message) return;
  group.told = message;
  const std::string pod = std::get<2>(*group.waiting.begin());
  const Entry& entry = *entries_.Find(pod);
  out->refusals.push_back({entry.kind, entry.space, entry.name, pod, std::move(message)});
}

}  // namespace fluxqueue::admission
