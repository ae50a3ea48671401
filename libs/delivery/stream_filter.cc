#include "libs/delivery/stream_filter.h"

#include <algorithm>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/delivery/incarnation.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace fluxqueue::delivery {

bool StreamPosition::Misses(uint64_t sequence) const {
  return std::ranges::any_of(gaps, [sequence](const auto& gap) {
    return gap.first <= sequence && sequence <= gap.second;
  });
}

void StreamPosition::Take(uint64_t sequence) {
  if (sequence > highest) {
    if (sequence > highest + 1) gaps.emplace_back(highest + 1, sequence - 1);
    highest = sequence;
  } else {
    const auto gap = std::ranges::find_if(gaps, [sequence](const auto& one) {
      return one.first <= sequence && sequence <= one.second;
    });
    const auto [first, last] = *gap;
    auto rest = gaps.erase(gap);
    if (sequence < last) rest = gaps.insert(rest, {sequence + 1, last});
    if (first < sequence) gaps.insert(rest, {first, sequence - 1});
  }
  if (gaps.size() > kMostGaps) gaps.erase(gaps.begin());
}

std::string StreamPosition::GapsText() const {
  std::string text;
  for (const auto& [first, last] : gaps) {
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", first, last);
  }
  return text;
}

StreamPosition StreamPosition::Parse(uint64_t highest, std::string_view gaps) {
  StreamPosition position(highest);
  for (const absl::string_view gap : absl::StrSplit(ToAbsl(gaps), ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(gap, '-');
    uint64_t first = 0;
    uint64_t last = 0;
    if (!absl::SimpleAtoi(ends.first, &first) || !absl::SimpleAtoi(ends.second, &last)) continue;
    position.gaps.emplace_back(first, last);
  }
  return position;
}

StreamFilter::Verdict StreamFilter::Judge(const std::string& stream, uint64_t sequence) {
  auto position = raised_.find(stream);
  bool known = position != raised_.end();
  if (!known) {
    position = seen_.find(stream);
    known = position != seen_.end();
  }
  static const StreamPosition kNothing;
  const StreamPosition& before = known ? position->second : kNothing;
  const bool is_new = sequence > before.highest;
  if (!is_new && !before.Misses(sequence)) return Verdict::kDuplicate;
  const bool any = !known && truncated_;
  const bool gap = sequence > before.highest + 1 && !any;
  if (gap && !HasIncarnation(stream)) return Verdict::kGap;
  StreamPosition after = any ? StreamPosition(sequence) : before;
  if (!any) after.Take(sequence);
  raised_[stream] = std::move(after);
  return gap ? Verdict::kTakeBehindGap : Verdict::kTake;
}

StreamFilter::Positions StreamFilter::unsaved() const {
  Positions all = unsaved_;
  for (const auto& [stream, position] : raised_) all[stream] = position;
  return all;
}

void StreamFilter::Keep() {
  for (auto& [stream, position] : raised_) {
    unsaved_[stream] = position;
    seen_[stream] = std::move(position);
  }
  raised_.clear();
}

void StreamFilter::Commit() {
  Keep();
  unsaved_.clear();
}

}  // namespace fluxqueue::delivery
