// Reading of Kubernetes JSON, private to this library: a Field is a place in a document that may be
// missing. Reading a missing field gives the default; reading one of a wrong type notes an error
// with its path (the first one is kept) and gives the default too, so that a view reads straight
// through and asks once at its end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "libs/kubernetes/quantity.h"
#include "libs/kubernetes/views.h"

#include "absl/status/status.h"

namespace fluxqueue::kubernetes::internal {

class Document;

// Milliseconds of an RFC 3339 time, also with a fraction or an offset.
std::optional<int64_t> ParseTime(std::string_view text);

class Field {
 public:
  Field operator[](std::string_view key) const;

  // Not missing and not null.
  bool present() const { return present_; }

  std::string String() const;
  std::string StringOr(std::string_view fallback) const;
  int64_t Int(int64_t fallback) const;
  std::optional<int64_t> OptionalInt(int64_t min, int64_t max) const;
  bool Bool() const;
  int64_t TimeMs() const;  // RFC 3339
  std::vector<std::string> Strings() const;
  StringMap StringMembers() const;
  std::map<std::string, std::vector<std::string>> StringLists() const;
  Amounts Quantities() const;
  // A quantity of the resource, or a number.
  std::optional<int64_t> OptionalQuantity(std::string_view resource) const;

  // each(Field) for the elements of an array.
  template <typename F>
  void ForEach(F each) const;

  // Notes an error at this place.
  void Fail(std::string_view what) const;

 private:
  friend class Document;
  Field(Document* document, int path) : document_(document), path_(path) {}
  Field Child(simdjson::dom::element value, std::string_view key, int index) const;
  // False, with an error noted, when it is present and of another type.
  template <typename T>
  bool Read(T* out, std::string_view type) const;

  Document* document_;
  int path_;
  bool present_ = false;
  simdjson::dom::element value_;
};

// One parsed text. Uses the thread's parser: one Document at a time in a thread, and no Field
// outlives it.
class Document {
 public:
  // `kind` is how errors name the object: "pod".
  Document(std::string_view kind, std::string_view json);

  Field root();
  // InvalidArgument: not JSON, or the first error noted, as "pod default/a:
  // spec.containers[0].name: …".
  absl::Status status() const;

 private:
  friend class Field;
  struct Step {
    int parent;
    std::string_view key;  // empty: `index` instead
    int index;
  };
  std::string PathOf(int path) const;

  std::string kind_;
  std::string name_;
  std::string error_;
  std::vector<Step> steps_;
  simdjson::dom::element root_;
  bool parsed_ = false;
};

template <typename T>
bool Field::Read(T* out, std::string_view type) const {
  if (!present_) return false;
  if (value_.get(*out) == simdjson::SUCCESS) return true;
  Fail(type);
  return false;
}

template <typename F>
void Field::ForEach(F each) const {
  simdjson::dom::array array;
  if (!Read(&array, "must be an array")) return;
  int index = 0;
  for (const simdjson::dom::element element : array) each(Child(element, {}, index++));
}

}  // namespace fluxqueue::kubernetes::internal
