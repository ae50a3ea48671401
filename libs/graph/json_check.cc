#include "libs/graph/json_check.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

// Returns false from an event to stop the parser; `status` then says why.
class Checker final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Checker(int max_depth) : max_depth_(max_depth) {}

  const absl::Status& status() const { return status_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return Push(); }
  bool end_object() override { return Pop(); }
  bool start_array(size_t) override { return Push(); }
  bool end_array() override { return Pop(); }

  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    status_ = InvalidArgument("the key \"{}\" stands twice in one object", name);
    return false;
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
  bool Push() {
    keys_.emplace_back();
    if (keys_.size() <= static_cast<size_t>(max_depth_)) return true;
    status_ = InvalidArgument("is nested deeper than {} levels", max_depth_);
    return false;
  }
  bool Pop() {
    keys_.pop_back();
    return true;
  }

  int max_depth_;
  std::vector<std::set<std::string>> keys_;  // of each object (or array) that is open
  absl::Status status_;
};

}  // namespace

absl::Status CheckJson(std::string_view text, int max_depth) {
  Checker checker(max_depth);
  nlohmann::json::sax_parse(text, &checker);
  return checker.status();
}

}  // namespace fluxqueue::graph
