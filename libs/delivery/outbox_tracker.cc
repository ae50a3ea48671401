#include "libs/delivery/outbox_tracker.h"

#include "libs/delivery/incarnation.h"

namespace fluxqueue::delivery {

size_t OutboxTracker::BytesOf(const Row& row) {
  constexpr size_t kOverhead = 300;  // headers, key, bookkeeping
  size_t bytes = 0;
  for (const WireRecord& record : row.records) bytes += record.value.size() + kOverhead;
  return bytes;
}

void OutboxTracker::Add(OutboxRow row) {
  if (row.records.empty()) return;
  const uint64_t id = ++last_row_;
  LineKey line(std::move(row.stream), std::move(row.target));
  lines_[line].rows.push_back(id);
  Row& added = rows_[id];
  added.line = std::move(line);
  added.last_seq = row.last_seq;
  added.records = std::move(row.records);
  records_ += added.records.size();
  bytes_ += BytesOf(added);
}

std::optional<OutboxTracker::Item> OutboxTracker::Next() {
  for (auto row = rows_.lower_bound(next_row_); row != rows_.end(); ++row) {
    if (row->first != next_row_) {
      next_row_ = row->first;
      next_record_ = 0;
    }
    if (!row->second.done() && next_record_ < row->second.records.size()) {
      return Item{row->first, row->second.line.second, row->second.records[next_record_]};
    }
  }
  next_row_ = last_row_ + 1;
  next_record_ = 0;
  return std::nullopt;
}

void OutboxTracker::Advance() {
  ++next_record_;
}

void OutboxTracker::Remove(std::map<uint64_t, Row>::iterator row) {
  bytes_ -= BytesOf(row->second);
  rows_.erase(row);
}

void OutboxTracker::Acknowledge(uint64_t id) {
  const auto found = rows_.find(id);
  if (found == rows_.end() || found->second.done()) return;
  ++found->second.acknowledged;
  --records_;
  Line& line = lines_[found->second.line];
  while (!line.rows.empty()) {
    const auto first = rows_.find(line.rows.front());
    if (!first->second.done()) break;
    line.prefix = first->second.last_seq;
    line.rows.pop_front();
    Remove(first);
  }
}

uint64_t OutboxTracker::acknowledged() const {
  return rows_.empty() ? last_row_ : rows_.begin()->first - 1;
}

void OutboxTracker::Restart() {
  next_row_ = 0;
  next_record_ = 0;
  for (auto& [id, row] : rows_) {
    if (row.done()) continue;
    records_ += row.acknowledged;
    row.acknowledged = 0;
  }
}

std::vector<Prefix> OutboxTracker::Prefixes() const {
  std::vector<Prefix> prefixes;
  for (const auto& [key, line] : lines_) {
    if (line.prefix > line.deleted) prefixes.push_back({key.first, key.second, line.prefix});
  }
  return prefixes;
}

void OutboxTracker::Deleted(const std::vector<Prefix>& prefixes) {
  for (const Prefix& prefix : prefixes) {
    const auto line = lines_.find({prefix.stream, prefix.target});
    if (line != lines_.end()) line->second.deleted = prefix.last_seq;
  }
}

void OutboxTracker::DropStream(const std::string& base) {
  for (auto line = lines_.begin(); line != lines_.end();) {
    if (BaseOf(line->first.first) != base) {
      ++line;
      continue;
    }
    for (const uint64_t id : line->second.rows) {
      const auto row = rows_.find(id);
      records_ -= row->second.records.size() - row->second.acknowledged;
      Remove(row);
    }
    line = lines_.erase(line);
  }
}

}  // namespace fluxqueue::delivery
