#include "libs/scheduling/dependencies.h"

#include <algorithm>
#include <array>
#include <utility>

#include "libs/base/check.h"

namespace fluxqueue::scheduling {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"afterok", "afterany", "afternotok"};

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
  CHECK(ending.number > last(), "ending {} after ending {}", ending.number, last());
  by_id_[ending.id].push_back(ending.number);
  by_name_[ending.name].push_back(ending.number);
  endings_.push_back(std::move(ending));
  ++provisional_;
}

const Ending* Endings::Find(const Index& index, const std::string& key) const {
  const auto it = index.find(key);
  if (it == index.end()) return nullptr;
  const uint64_t number = it->second.back();
  if (number + kEndingsKept <= last()) return nullptr;
  const auto at = std::lower_bound(
      endings_.begin(), endings_.end(), number, [](const Ending& ending, uint64_t wanted) {
        return ending.number < wanted;
      });
  return &*at;
}

void Endings::Forget(Index* index, const std::string& key, uint64_t number) {
  const auto it = index->find(key);
  std::vector<uint64_t>& numbers = it->second;
  numbers.erase(std::find(numbers.begin(), numbers.end(), number));
  if (numbers.empty()) index->erase(it);
}

void Endings::Commit() {
  provisional_ = 0;
  while (!endings_.empty() && endings_.front().number + kEndingsKept <= last()) {
    const Ending& oldest = endings_.front();
    Forget(&by_id_, oldest.id, oldest.number);
    Forget(&by_name_, oldest.name, oldest.number);
    endings_.pop_front();
  }
}

void Endings::Rollback() {
  for (; provisional_ > 0; --provisional_) {
    const Ending& latest = endings_.back();
    Forget(&by_id_, latest.id, latest.number);
    Forget(&by_name_, latest.name, latest.number);
    endings_.pop_back();
  }
}

void Endings::Clear() {
  endings_.clear();
  by_id_.clear();
  by_name_.clear();
  provisional_ = 0;
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
