#include "libs/graph/json_check.h"

#include <algorithm>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"

namespace fluxqueue::graph {
namespace {

// Of one object: all of them are kept until it ends.
constexpr size_t kMaxKeys = 1'000'000;

// Returns false from an event to stop the parser; `status` then says why.
class Checker final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Checker(const JsonLimits& limits) : limits_(limits) {}

  const absl::Status& status() const { return status_; }

  bool null() override { return Begin(); }
  bool boolean(bool) override { return Begin(); }
  bool number_integer(number_integer_t) override { return Begin(); }
  bool number_unsigned(number_unsigned_t) override { return Begin(); }
  bool number_float(number_float_t, const string_t&) override { return Begin(); }
  bool string(string_t& text) override { return Begin() && CheckText(text); }
  bool binary(binary_t&) override { return Begin(); }
  bool start_object(size_t) override { return Begin() && Push(); }
  bool end_object() override { return Pop(); }
  bool start_array(size_t) override {
    if (!Begin() || !Push()) return false;
    open_.back().is_list = true;
    // Most texts have no such list: the path is not made for them.
    if (limits_.lists.empty()) return true;
    const std::string path = Path(open_.size() - 1);
    for (const JsonLimits::List& list : limits_.lists) {
      if (list.path == path) open_.back().most_items = list.items;
    }
    return true;
  }
  bool end_array() override { return Pop(); }

  bool key(string_t& name) override {
    open_.back().key = name;
    if (limits_.is_plain && !IsPlain(name, SIZE_MAX)) {
      return Fail(open_.size() - 1, "has a key with a control character");
    }
    if (open_.back().keys.size() == kMaxKeys) {
      return Fail(open_.size() - 1, fmt::format("has more than {} keys", kMaxKeys));
    }
    if (!open_.back().keys.insert(name).second) {
      return Fail(open_.size() - 1, fmt::format("the key \"{}\" stands twice", name));
    }
    return Count();
  }

  bool parse_error(size_t position,
                   const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …"
    std::string_view what = error.what();
    const size_t prefix = what.find("] ");
    if (prefix != std::string_view::npos) what.remove_prefix(prefix + 2);
    status_ = InvalidArgument("is no JSON (byte {}): {}", position, what);
    return false;
  }

 private:
  // An object or a list that has not ended.
  struct Open {
    bool is_list = false;
    size_t items = 0;  // of a list: that have begun
    size_t most_items = SIZE_MAX;
    std::string key = {};  // of an object: the last
    std::set<std::string> keys = {};
  };

  // Where the value is that the last of the first `levels` have begun; empty at the top.
  std::string Path(size_t levels) const {
    std::string path;
    for (size_t i = 0; i < levels; ++i) {
      if (open_[i].is_list) {
        path += fmt::format("[{}]", open_[i].items - 1);
      } else {
        path += fmt::format("{}{}", path.empty() ? "" : ".", open_[i].key);
      }
    }
    return path;
  }
  bool Fail(size_t levels, const std::string& what) {
    const std::string path = Path(levels);
    status_ = InvalidArgument("{}{}{}", path, path.empty() ? "" : ": ", what);
    return false;
  }

  bool CheckText(const std::string& text) {
    if (limits_.is_plain && !IsPlain(text, SIZE_MAX)) {
      return Fail(open_.size(), "holds a control character");
    }
    if (open_.empty() || open_.back().is_list || text.size() <= limits_.name_bytes) return true;
    const auto& keys = limits_.name_keys;
    if (std::find(keys.begin(), keys.end(), open_.back().key) == keys.end()) return true;
    return Fail(
        open_.size(),
        fmt::format("has {} bytes; at most {} are allowed", text.size(), limits_.name_bytes));
  }

  bool Count() {
    if (++values_ <= limits_.values) return true;
    return Fail(open_.size(), fmt::format("has more than {} values", limits_.values));
  }
  bool Begin() {
    if (!open_.empty() && open_.back().is_list && ++open_.back().items > open_.back().most_items) {
      return Fail(open_.size() - 1, fmt::format("has more than {} items", open_.back().most_items));
    }
    return Count();
  }
  bool Push() {
    open_.emplace_back();
    if (open_.size() <= static_cast<size_t>(limits_.depth)) return true;
    return Fail(open_.size() - 1, fmt::format("is nested deeper than {} levels", limits_.depth));
  }
  bool Pop() {
    open_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  size_t values_ = 0;
  std::vector<Open> open_;
  absl::Status status_;
};

}  // namespace

absl::Status CheckJson(std::string_view text, const JsonLimits& limits) {
  Checker checker(limits);
  nlohmann::json::sax_parse(text, &checker);
  return checker.status();
}

}  // namespace fluxqueue::graph
