#include "libs/scheduling/dependencies.h"

#include <algorithm>
#include <array>
#include <utility>

#include "libs/base/check.h"

namespace fluxqueue::scheduling {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"afterok", "afterany", "afternotok"};

using Index = std::unordered_map<std::string, std::vector<uint64_t>>;

void EnterIn(Index* index, const std::string& key, uint64_t number) {
  std::vector<uint64_t>& numbers = (*index)[key];
  numbers.insert(std::upper_bound(numbers.begin(), numbers.end(), number), number);
}

void ForgetIn(Index* index, const std::string& key, uint64_t number) {
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
  Enter(ending);
  endings_.Put(last_, std::move(ending));
}

void Endings::Remove(const std::string& id) {
  const auto it = by_id_.find(id);
  if (it != by_id_.end()) Erase(it->second.back());
}

const Ending* Endings::Find(const Index& index, const std::string& key) const {
  const auto it = index.find(key);
  if (it == index.end()) return nullptr;
  const uint64_t number = it->second.back();
  return number + kEndingsKept <= last_ ? nullptr : endings_.Find(number);
}

void Endings::Enter(const Ending& ending) {
  EnterIn(&by_id_, ending.id, ending.number);
  EnterIn(&by_name_, ending.name, ending.number);
}

void Endings::Forget(const Ending& ending) {
  ForgetIn(&by_id_, ending.id, ending.number);
  ForgetIn(&by_name_, ending.name, ending.number);
}

void Endings::Erase(uint64_t number) {
  Forget(*endings_.Find(number));
  endings_.Erase(number);
}

void Endings::Commit() {
  committed_last_ = last_;
  while (!endings_.empty() && endings_.map().begin()->first + kEndingsKept <= last_) {
    Erase(endings_.map().begin()->first);
  }
  endings_.Commit();
}

void Endings::Rollback() {
  last_ = committed_last_;
  endings_.Rollback([this](uint64_t, const Ending& ending) { Forget(ending); },
                    [this](uint64_t, const Ending& ending) { Enter(ending); });
}

void Endings::Restore(Ending ending) {
  const uint64_t number = ending.number;
  last_ = committed_last_ = std::max(last_, number);
  Enter(endings_.Restore(number, std::move(ending)));
}

void Endings::Clear() {
  endings_.Clear();
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
