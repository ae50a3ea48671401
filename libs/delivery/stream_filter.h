// Which messages of a partition are new. A stream's sequences are contiguous, and its publisher
// repeats from the first that was not acknowledged; so a sequence that was seen is a duplicate. One
// behind a gap is taken: what is missing was acknowledged and is in the log no more (a broker has
// lost it), or could not be checked. Should it come later after all, it is taken then. If not,
// neighbours find out what they lack by their rows.
//
// Streams of earlier versions (without an incarnation) were deaf behind a gap; old logs are read as
// they were. Pure; provisional until Keep, as all memory of a batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fluxqueue::delivery {

// Where a reader stands in a stream.
struct StreamPosition {
  // More gaps are forgotten, the oldest first: what is missing there is then a duplicate.
  static constexpr size_t kMostGaps = 16;

  uint64_t highest = 0;
  std::vector<std::pair<uint64_t, uint64_t>> gaps{};  // below it: first and last, in their order

  StreamPosition() = default;
  StreamPosition(uint64_t sequence) : highest(sequence) {}  // NOLINT(*-explicit-*)

  bool Misses(uint64_t sequence) const;
  // REQUIRES: it is above the highest, or Misses(it).
  void Take(uint64_t sequence);

  // "7-9 12-12", as the gaps are kept in tables. What does not parse has none.
  std::string GapsText() const;
  static StreamPosition Parse(uint64_t highest, std::string_view gaps);

  friend bool operator==(const StreamPosition&, const StreamPosition&) = default;
};

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
  using Positions = std::unordered_map<std::string, StreamPosition>;

  // `seen`: where each stream stands. `truncated`: the log's beginning is not known to
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
