// Array parameters for set-based SQL: one statement for a batch.
//
//   TextArray ids;  BigintArray versions;  ByteaArray rows;
//   for (…) { ids.Add(job.id); versions.Add(job.version); rows.Add(job.bytes); }
//   Exec(tx, kUpsert, ids.text(), versions.text(), rows.text());
//   // … SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[]) …
//
// They build the text form of an array ({a,"b c",NULL}), which is what libpqxx 6 can send.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fluxqueue::postgres {

class ArrayText {
 public:
  // A literal `{…}`, to be passed as a parameter with a cast ($1::text[]).
  std::string text() const { return text_ + "}"; }
  bool empty() const { return text_.size() == 1; }
  size_t size() const { return size_; }

  void AddNull();
  // What Postgres refuses in a text becomes U+FFFD: NUL, and bytes that are no UTF-8. One such text
  // would end the whole statement, and all others with it.
  void AddText(std::string_view value);
  void AddNumber(int64_t value);
  void AddFlag(bool value);
  void AddBytes(std::string_view bytes);

 private:
  void Separate();

  std::string text_ = "{";
  size_t size_ = 0;
};

// Arrays of one type.
class TextArray : public ArrayText {
 public:
  void Add(std::string_view value) { AddText(value); }
};

class BigintArray : public ArrayText {
 public:
  void Add(int64_t value) { AddNumber(value); }
};

class BoolArray : public ArrayText {
 public:
  void Add(bool value) { AddFlag(value); }
};

class ByteaArray : public ArrayText {
 public:
  void Add(std::string_view bytes) { AddBytes(bytes); }
};

}  // namespace fluxqueue::postgres
