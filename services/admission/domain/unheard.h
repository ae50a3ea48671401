// Which of the things that were said a reader of the log has not got, and never will: the log has
// lost them. Pure.
//
// Each look brings what a reader's tables lack. What is on its way is lacked, too. So at the first
// sight it is noted how much had been said; once all of that is in Kafka, where the log ends; and
// once the reader has handled the log up to there, what is still lacked is lost.
//
// What is lost again and again (the reader cannot handle it) is named ever more seldom. Looks go
// through all uids page by page, so that such ones do not stand in the way of others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fluxqueue::admission {

// What a reader lacks, and the partition of its pool.
struct Lack {
  std::string uid;
  int partition = 0;
};

// One look at a page of uids, as of one moment.
struct Comparison {
  std::string after{};  // the page's uids are greater
  std::string until{};  // its last uid; empty: it goes on to the end
  std::vector<Lack> lacks;
  std::map<int, int64_t> handled;  // by partition: the offset up to which its log is handled
};

class Unheard {
 public:
  // What was said, by numbers that rise: all of it until now, and what is in Kafka. `end`: of a
  // partition's log now; unset: it cannot be asked.
  struct Log {
    uint64_t said = 0;
    uint64_t acknowledged = 0;
    std::function<std::optional<int64_t>(int partition)> end{};
  };

  // Uids of what is lost.
  std::vector<std::string> Look(const Comparison& seen, const Log& log);
  void Clear() { sights_.clear(); }

 private:
  struct Sight {
    uint64_t said = 0;
    std::optional<int64_t> end{};
    uint32_t lost = 0;  // looks that have found it so
  };

  // Takes those of the page out.
  std::map<std::string, Sight> TakePage(const Comparison& seen);

  std::map<std::string, Sight> sights_;
};

}  // namespace fluxqueue::admission
