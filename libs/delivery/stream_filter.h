// Which messages of a partition are new. A stream's sequences are contiguous, and its publisher
// repeats from the first that was not acknowledged; so a sequence that was seen is a duplicate. One
// behind a gap is taken: what is missing was acknowledged and is in the log no more, and will not
// come again (a broker has lost it). Neighbours then find out what they lack by their rows.
//
// Streams of earlier versions (without an incarnation) were deaf behind a gap; old logs are read as
// they were. Pure; provisional until Keep, as all memory of a batch.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace fluxqueue::delivery {

class StreamFilter {
 public:
  enum class Verdict {
    kTake,
    kTakeBehindGap,
    kDuplicate,
    kGap,  // of an earlier version: skipped
  };
  static bool Takes(Verdict verdict) {
    return verdict == Verdict::kTake || verdict == Verdict::kTakeBehindGap;
  }
  using Positions = std::unordered_map<std::string, uint64_t>;

  // `seen`: the highest sequence of each stream. `truncated`: the log's beginning is not known to
  // us, so a stream that is not in `seen` may begin at any sequence; else it begins at 1.
  StreamFilter(Positions seen, bool truncated) : seen_(std::move(seen)), truncated_(truncated) {}

  // What is taken raises the stream's position.
  Verdict Judge(const std::string& stream, uint64_t sequence);

  // The streams whose rows are behind.
  Positions unsaved() const;
  // The batch is final; its rows are to be written by a later one.
  void Keep();
  // So are the rows of all that is unsaved.
  void Commit();
  void Rollback() { raised_.clear(); }

 private:
  Positions seen_;
  Positions raised_;   // by the batch under way
  Positions unsaved_;  // by those that were kept
  bool truncated_;
};

}  // namespace fluxqueue::delivery
