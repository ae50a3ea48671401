// The calls that wait to be made, in the order in which they came; but those that have failed
// before may hold only a quarter of the threads, at least one. A call may take as long as the API
// server likes, and what is slow or refused once mostly is again: its user's objects must not keep
// everybody's waiting.
//
// Bounded: of each slot, and of each job itself, one call of a kind waits, the last. An earlier one
// that no thread has taken up yet gives it its place: its answer is not waited for any more, since
// a planner asks for the next only when it has the answer, or had lost the job meanwhile.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "services/binder/domain/call.h"

namespace fluxqueue::binder {

class CallQueue {
 public:
  struct Waiting {
    Call call;
    std::chrono::steady_clock::time_point since;
  };

  // REQUIRES: threads > 0.
  explicit CallQueue(int threads) : most_again_(std::max(1, threads / 4)) {}

  void Push(Waiting waiting) {
    std::string key = KeyOf(waiting.call);
    const auto known = places_.find(key);
    if (known != places_.end() && known->second->call.again == waiting.call.again) {
      *known->second = std::move(waiting);
      return;
    }
    if (known != places_.end()) Erase(known->second);
    Line& line = LineOf(waiting.call);
    places_[std::move(key)] = line.insert(line.end(), std::move(waiting));
  }
  bool HasNext() const { return MayRepeat() || !first_.empty(); }
  // REQUIRES: HasNext(). It is being made until Done.
  Waiting Pop() {
    const auto place = MayRepeat() ? again_.begin() : first_.begin();
    Waiting next = std::move(*place);
    places_.erase(KeyOf(next.call));
    LineOf(next.call).erase(place);
    if (next.call.again) ++repeating_;
    return next;
  }
  void Done(const Call& call) {
    if (call.again) --repeating_;
  }
  void Clear() {
    places_.clear();
    first_.clear();
    again_.clear();
  }
  size_t size() const { return places_.size(); }

 private:
  using Line = std::list<Waiting>;

  static std::string KeyOf(const Call& call) {
    return fmt::format("{}/{}/{}", call.job_id, call.slot, static_cast<int>(call.kind));
  }
  Line& LineOf(const Call& call) { return call.again ? again_ : first_; }
  void Erase(Line::iterator place) { LineOf(place->call).erase(place); }
  bool MayRepeat() const { return repeating_ < most_again_ && !again_.empty(); }

  const int most_again_;
  int repeating_ = 0;
  Line first_;
  Line again_;
  std::unordered_map<std::string, Line::iterator> places_;
};

}  // namespace fluxqueue::binder
