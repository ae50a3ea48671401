// Remembers what visits to nodes came to, so that a walk need not go into a node that has not
// changed since a like request was there.
//
// What a visit finds below a node depends on the request's levels there, on how it got there, on
// the window, and on what is held, up, and labelled at the node and below it; the last three are
// told by the node's version. So a remembered outcome with the same version is the outcome.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "libs/graph/candidates.h"

namespace fluxqueue::graph {

class VisitCache {
 public:
  struct Key {
    std::string shape;  // of the request: its resources and constraints
    uint32_t list = 0;  // which list of levels of the request
    bool pristine = false;
    bool exclusive = false;
    int64_t at_s = 0;
    int64_t duration_s = 0;
    bool ever = false;

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Outcome {
    uint64_t version = 0;  // 0: not known
    bool fits = false;
    bool exclusive = false;
    uint64_t available = 0;
    int64_t score = 0;
    std::unique_ptr<Candidates> found;  // null: nothing goes up
  };
  // By the node's place among the nodes.
  using Outcomes = std::vector<Outcome>;

  // Valid until the next call. The one that was not asked for longest goes when there are too many.
  Outcomes& For(const Key& key, size_t nodes);
  void Clear() { tables_.clear(); }

 private:
  static constexpr size_t kMaxTables = 16;

  struct Table {
    Key key;
    Outcomes outcomes;
  };
  std::list<Table> tables_;  // the last asked for first
};

inline VisitCache::Outcomes& VisitCache::For(const Key& key, size_t nodes) {
  for (auto table = tables_.begin(); table != tables_.end(); ++table) {
    if (!(table->key == key)) continue;
    tables_.splice(tables_.begin(), tables_, table);
    return table->outcomes;
  }
  if (tables_.size() == kMaxTables) tables_.pop_back();
  tables_.push_front({key, Outcomes(nodes)});
  return tables_.front().outcomes;
}

}  // namespace fluxqueue::graph
