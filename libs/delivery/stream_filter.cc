#include "libs/delivery/stream_filter.h"

#include "libs/delivery/incarnation.h"

namespace fluxqueue::delivery {

StreamFilter::Verdict StreamFilter::Judge(const std::string& stream, uint64_t sequence) {
  auto position = raised_.find(stream);
  bool known = position != raised_.end();
  if (!known) {
    position = seen_.find(stream);
    known = position != seen_.end();
  }
  const uint64_t highest = known ? position->second : 0;
  if (sequence <= highest) return Verdict::kDuplicate;
  const bool any = !known && truncated_;
  const bool gap = sequence > highest + 1 && !any;
  if (gap && !HasIncarnation(stream)) return Verdict::kGap;
  raised_[stream] = sequence;
  return gap ? Verdict::kTakeBehindGap : Verdict::kTake;
}

StreamFilter::Positions StreamFilter::unsaved() const {
  Positions all = unsaved_;
  for (const auto& [stream, sequence] : raised_) all[stream] = sequence;
  return all;
}

void StreamFilter::Keep() {
  for (const auto& [stream, sequence] : raised_) seen_[stream] = unsaved_[stream] = sequence;
  raised_.clear();
}

void StreamFilter::Commit() {
  Keep();
  unsaved_.clear();
}

}  // namespace fluxqueue::delivery
