// A map whose changes are provisional: Commit() keeps those made since the last one, Rollback()
// takes them back.
//
//   Journaled<std::map<std::string, Node>> nodes;
//   nodes.Put("a", node);
//   for (const auto& change : nodes.Changes()) …   // rows to be written
//   nodes.Commit();                                // or nodes.Rollback()
//
// Reading is the map's own (map()). Each key that was touched is remembered once with what it had,
// so a batch costs what it touches, however large the map is. What the caller derives from the
// entries (an index, a sum) follows a rollback through its two functions.
//
// `Map`: std::map or std::unordered_map whose values can be copied and compared. Thread-compatible.
// Pointers and references to values live as those of the map; Rollback() ends those of the keys
// that it restores.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace fluxqueue {

template <typename Map>
class Journaled {
 public:
  using Key = typename Map::key_type;
  using Value = typename Map::mapped_type;

  const Map& map() const { return map_; }
  bool empty() const { return map_.empty(); }
  size_t size() const { return map_.size(); }
  bool Has(const Key& key) const { return map_.find(key) != map_.end(); }
  // Null: it is not there.
  const Value* Find(const Key& key) const {
    const auto it = map_.find(key);
    return it == map_.end() ? nullptr : &it->second;
  }

  // Made when it is not there. The reference is for changing it at once.
  Value& Edit(const Key& key) {
    Remember(key);
    return map_[key];
  }
  void Put(const Key& key, Value value) { Edit(key) = std::move(value); }
  // For what no row shows and no rollback has to take back; one that restores the key for another
  // change does. Null: it is not there.
  Value* EditInPassing(const Key& key) {
    const auto it = map_.find(key);
    return it == map_.end() ? nullptr : &it->second;
  }
  // False: it is not there.
  bool Erase(const Key& key) {
    const auto it = map_.find(key);
    if (it == map_.end()) return false;
    Remember(key);
    map_.erase(it);
    return true;
  }
  void EraseAll() {
    for (const auto& [key, value] : map_) Remember(key);
    map_.clear();
  }
  void Put(const Key& key, std::optional<Value> value) {
    if (value.has_value()) {
      Put(key, *std::move(value));
    } else {
      Erase(key);
    }
  }

  struct Change {
    const Key& key;
    const Value* before;  // null: it was not there
    const Value* now;     // null: it is not there any more
  };
  // Of the keys that were touched since the last Commit or Rollback, in their order. Valid until
  // the next change.
  std::vector<Change> Touched() const {
    std::vector<Change> touched;
    for (const auto& [key, before] : before_) {
      touched.push_back({key, before.has_value() ? &*before : nullptr, Find(key)});
    }
    return touched;
  }
  // Of these, the keys whose entry is another now.
  std::vector<Change> Changes() const {
    std::vector<Change> changes;
    for (const Change& change : Touched()) {
      const bool both = change.before != nullptr && change.now != nullptr;
      const bool same = both ? *change.before == *change.now : change.before == change.now;
      if (!same) changes.push_back(change);
    }
    return changes;
  }

  void Commit() { before_.clear(); }
  // `out` is called with each entry that was touched, as it is now, and then `in` with each as it
  // is restored: first all are out, as two entries may have swapped what an index goes by.
  template <typename Out, typename In>
  void Rollback(Out out, In in) {
    for (const auto& [key, before] : before_) {
      const auto it = map_.find(key);
      if (it == map_.end()) continue;
      out(key, it->second);
      map_.erase(it);
    }
    for (auto& [key, before] : before_) {
      if (!before.has_value()) continue;
      const auto restored = map_.emplace(key, *std::move(before)).first;
      in(key, restored->second);
    }
    before_.clear();
  }
  void Rollback() {
    const auto nothing = [](const Key&, const Value&) {};
    Rollback(nothing, nothing);
  }

  // As it was kept: no change.
  const Value& Restore(const Key& key, Value value) { return map_[key] = std::move(value); }
  // Empty, and nothing to take back.
  void Clear() {
    map_.clear();
    before_.clear();
  }

 private:
  void Remember(const Key& key) {
    const auto [it, first] = before_.try_emplace(key);
    if (!first) return;
    const auto known = map_.find(key);
    if (known != map_.end()) it->second = known->second;
  }

  Map map_;
  // By key: what it had at the last Commit or Rollback.
  std::map<Key, std::optional<Value>> before_;
};

}  // namespace fluxqueue
