// Lines of a trace taken apart, with errors that name file, line, field, value and what is allowed.
// Private to this library. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/trace/trace.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::trace::internal {

// The next line of `rest` without its end (LF or CRLF), cut off from it; unset at the end.
std::optional<std::string_view> NextLine(std::string_view* rest);

// Pieces between separators, empty ones too.
std::vector<std::string_view> SplitAt(std::string_view line, char separator);
// Words between blanks.
std::vector<std::string_view> SplitWords(std::string_view line);

// One line and its fields: reads them, and notes the first that is wrong.
class Record {
 public:
  // `file` must outlive it.
  Record(std::string_view file, size_t line, std::vector<std::string_view> fields)
      : file_(file), line_(line), fields_(std::move(fields)) {}

  size_t size() const { return fields_.size(); }
  size_t line() const { return line_; }

  // `name` is what people know the field by. A wrong one gives 0 or "", and status() is its error.
  std::string Text(size_t field, std::string_view name);
  int64_t Integer(size_t field, std::string_view name, int64_t min, int64_t max);
  double Seconds(size_t field, std::string_view name, double min);
  bool Empty(size_t field) const { return fields_[field].empty(); }

  // An error at this line: "trace.swf:12: <what>".
  absl::Status Error(std::string_view what) const;
  void Fail(size_t field, std::string_view name, std::string_view allowed);

  const absl::Status& status() const { return status_; }

 private:
  const std::string_view file_;
  const size_t line_;
  const std::vector<std::string_view> fields_;
  absl::Status status_;
};

// Sorts by submit time and counts it from the first job.
void Arrange(Trace* trace);

}  // namespace fluxqueue::trace::internal
