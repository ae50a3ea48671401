// Typed configuration: a section lists its fields once, each bound to the member that it fills.
//
//   struct SweepConfig {
//     Millis interval{std::chrono::minutes(1)};
//     int batch = 500;
//     std::string policy = "first";
//   };
//   config::Section Describe(SweepConfig* config) {
//     return config::Section()
//         .Duration("interval", &config->interval, 1s, 1h)
//         .Int("batch", &config->batch, 1, 10'000)
//         .Choice("policy", &config->policy, {"first", "lonode", "hinode"});
//   }
//
// The default of a field is what the member holds before. A file is read whole and validated whole:
// the status of a bad one lists every problem in it, one to a line, each with file, line, key,
// value and what is allowed. Unknown and repeated keys are problems too; the known keys are listed.
//
// ${NAME} in a value is replaced by the environment's variable NAME, which has to be set.
//
// A section borrows the members that it fills: they must outlive it. Not thread-safe.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/base/check.h"
#include "libs/base/clock.h"

#include "absl/status/status.h"

namespace fluxqueue::config {

enum class Presence { kOptional, kRequired };

class Section {
 public:
  // Any text. Required: the key must be there, and must not be empty.
  Section& Text(std::string key, std::string* out, Presence presence = Presence::kOptional);

  // A path to a file. It is not opened here; required as above.
  Section& Path(std::string key, std::string* out, Presence presence = Presence::kOptional);

  // Of the field listed last: what stands in the file, before the environment's values are put in.
  Section& AsWritten(std::string* out);

  // One of the words listed.
  Section& Choice(std::string key, std::string* out, std::vector<std::string> allowed);

  // true or false.
  Section& Bool(std::string key, bool* out);

  // A whole number, min ≤ n ≤ max.
  template <std::integral Number>
  Section& Int(std::string key, Number* out, int64_t min, int64_t max) {
    CHECK(std::in_range<Number>(min) && std::in_range<Number>(max), "range of {}", key);
    return Integer(
        std::move(key), min, max, [out](int64_t value) { *out = static_cast<Number>(value); });
  }

  Section& Double(std::string key, double* out, double min, double max);

  // `250ms`, `3s`, `1h30m`.
  Section& Duration(std::string key, Millis* out, Millis min, Millis max);

  // Bytes: `4096`, `64KiB`, `3MiB`.
  Section& Size(std::string key, int64_t* out, int64_t min, int64_t max);

  // A list of texts; replaces the default.
  Section& List(std::string key, std::vector<std::string>* out);

  // A section within this one.
  Section& Nested(std::string key, Section section);

  // Anything may stand there: it is not read.
  Section& Ignored(std::string key);

  // A rule between fields, asked after all of this section could be read. Its message needs to name
  // the keys.
  Section& Rule(std::function<absl::Status()> rule);

  // All keys, in the order in which they were listed.
  std::vector<std::string> Keys() const;

 private:
  friend class SectionReader;

  struct Field {
    std::string key;
    std::string allowed;  // "a duration from 1s to 1h, such as 3s"
    Presence presence = Presence::kOptional;
    // One of the three is set, or none: ignored. `scalar` is false when it may not be.
    std::function<bool(const std::string&)> scalar;
    std::string* written = nullptr;
    std::vector<std::string>* list = nullptr;
    std::shared_ptr<const Section> section;
  };

  Section& Scalar(std::string key,
                  std::string allowed,
                  std::function<bool(const std::string&)> read,
                  Presence presence = Presence::kOptional);
  Section& Integer(std::string key, int64_t min, int64_t max, std::function<void(int64_t)> store);

  std::vector<Field> fields_;
  std::vector<std::function<absl::Status()>> rules_;
};

// Fills the members that `root` is bound to. `file` is the name that messages show. InvalidArgument
// with all problems; members may then be partly filled.
absl::Status Read(std::string_view file, const std::string& text, const Section& root);

// The same from a file. NotFound when there is none.
absl::Status ReadFile(const std::string& path, const Section& root);

}  // namespace fluxqueue::config
