#include "libs/scheduling/dependencies.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "libs/base/check.h"

namespace fluxqueue::scheduling {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"afterok", "afterany", "afternotok"};

using Index = std::unordered_map<std::string, std::vector<uint64_t>>;

void Enter(Index* index, const std::string& key, uint64_t number) {
  std::vector<uint64_t>& numbers = (*index)[key];
  numbers.insert(std::upper_bound(numbers.begin(), numbers.end(), number), number);
}

void Forget(Index* index, const std::string& key, uint64_t number) {
  const auto it = index->find(key);
  std::vector<uint64_t>& numbers = it->second;
  numbers.erase(std::find(numbers.begin(), numbers.end(), number));
  if (numbers.empty()) index->erase(it);
}

}  // namespace

std::string_view Name(Condition condition) {
  return kNames[static_cast<size_t>(condition)];
}

std::optional<Condition> FindCondition(std::string_view name) {
  const auto it = std::find(kNames.begin(), kNames.end(), name);
  if (it == kNames.end()) return std::nullopt;
  return static_cast<Condition>(it - kNames.begin());
}

Fulfilment Judge(Condition condition, bool succeeded) {
  switch (condition) {
    case Condition::kAfterOk:
      return succeeded ? Fulfilment::kMet : Fulfilment::kNever;
    case Condition::kAfterNotOk:
      return succeeded ? Fulfilment::kNever : Fulfilment::kMet;
    case Condition::kAfterAny:
      break;
  }
  return Fulfilment::kMet;
}

void Endings::Add(Ending ending) {
  CHECK(ending.number > last_, "ending {} after ending {}", ending.number, last_);
  last_ = ending.number;
  Insert(std::move(ending));
}

void Endings::Remove(const std::string& id) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return;
  const Place place = PlaceOf(it->second.back());
  if (place->number <= committed_last_) removed_.push_back(*place);
  Erase(place);
}

Endings::Place Endings::PlaceOf(uint64_t number) const {
  return std::lower_bound(
      endings_.begin(), endings_.end(), number, [](const Ending& ending, uint64_t wanted) {
        return ending.number < wanted;
      });
}

const Ending* Endings::Find(const Index& index, const std::string& key) const {
  const auto it = index.find(key);
  if (it == index.end()) return nullptr;
  const uint64_t number = it->second.back();
  if (number + kEndingsKept <= last_) return nullptr;
  return &*PlaceOf(number);
}

void Endings::Insert(Ending ending) {
  Enter(&by_id_, ending.id, ending.number);
  Enter(&by_name_, ending.name, ending.number);
  const Place place = PlaceOf(ending.number);
  endings_.insert(place, std::move(ending));
}

void Endings::Erase(Place place) {
  Forget(&by_id_, place->id, place->number);
  Forget(&by_name_, place->name, place->number);
  endings_.erase(place);
}

void Endings::Commit() {
  removed_.clear();
  committed_last_ = last_;
  while (!endings_.empty() && endings_.front().number + kEndingsKept <= last_) {
    Erase(endings_.begin());
  }
}

void Endings::Rollback() {
  last_ = committed_last_;
  while (!endings_.empty() && endings_.back().number > last_) Erase(std::prev(endings_.end()));
  for (Ending& ending : removed_) Insert(std::move(ending));
  removed_.clear();
}

void Endings::Restore(Ending ending) {
  last_ = committed_last_ = std::max(last_, ending.number);
  Insert(std::move(ending));
}

void Endings::Clear() {
  endings_.clear();
  removed_.clear();
  by_id_.clear();
  by_name_.clear();
  last_ = committed_last_ = 0;
}

void Dependents::Remove(const std::string& target, uint64_t dependent) {
  const auto it = waiting_.find(target);
  if (it == waiting_.end()) return;
  it->second.erase(dependent);
  if (it->second.empty()) waiting_.erase(it);
}

std::vector<uint64_t> Dependents::Of(const std::string& target) const {
  const auto it = waiting_.find(target);
  if (it == waiting_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

bool Reaches(const std::string& from,
             const std::string& to,
             const std::function<std::vector<std::string>(const std::string&)>& targets) {
  std::unordered_set<std::string> seen = {from};
  std::vector<std::string> open = {from};
  while (!open.empty()) {
    const std::string at = std::move(open.back());
    open.pop_back();
    if (at == to) return true;
    for (std::string& next : targets(at)) {
      if (seen.insert(next).second) open.push_back(std::move(next));
    }
  }
  return false;
}

}  // namespace fluxqueue::scheduling
