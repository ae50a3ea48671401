#include "libs/graph/json_items.h"

#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;

constexpr size_t kMaxItemValues = 1'000'000;
// What is open around an item: the text's object, the parent, the list.
constexpr size_t kAroundItem = 3;

// Returns false from an event to stop the parser; `status` then says why.
class ItemBuilder final : public nlohmann::json_sax<json> {
 public:
  ItemBuilder(const JsonItemLists& where, const ReadJsonItem& read) : where_(where), read_(read) {}

  const absl::Status& status() const { return status_; }
  json TakeRest() { return std::move(root_); }

  bool null() override { return Value(nullptr); }
  bool boolean(bool value) override { return Value(value); }
  bool number_integer(number_integer_t value) override { return Value(value); }
  bool number_unsigned(number_unsigned_t value) override { return Value(value); }
  bool number_float(number_float_t value, const string_t&) override { return Value(value); }
  bool string(string_t& value) override { return Value(std::move(value)); }
  bool binary(binary_t& value) override { return Value(std::move(value)); }
  bool start_object(size_t) override { return Open(json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    status_ = Internal("JSON that had been checked does not parse");
    return false;
  }

 private:
  bool Value(json value) {
    Put(std::move(value));
    return Ended();
  }
  bool Open(json value) {
    const bool is_list = open_.size() + 1 == kAroundItem && value.is_array();
    open_.push_back(Put(std::move(value)));
    if (is_list) {
      list_ = key_;
      items_ = 0;
    }
    return true;
  }
  bool Close() {
    open_.pop_back();
    return Ended();
  }

  // Whether the value under the key that came last is asked for, or is part of an item.
  bool Wanted() const {
    if (open_.size() == 1) return key_ == where_.parent;
    if (open_.size() > 2) return true;
    return std::find(where_.lists.begin(), where_.lists.end(), key_) != where_.lists.end();
  }

  // Where the value is kept; null: nowhere.
  json* Put(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json* parent = open_.back();
    if (parent == nullptr) return nullptr;
    ++values_;
    if (parent->is_object()) {
      // Only a list has items.
      if (!Wanted() || open_.size() == kAroundItem) return nullptr;
      return &((*parent)[key_] = std::move(value));
    }
    if (open_.size() < kAroundItem) return nullptr;
    parent->push_back(std::move(value));
    return &parent->back();
  }

  // A value has; when it was an item, it is handed out.
  bool Ended() {
    if (open_.size() < kAroundItem || open_[kAroundItem - 1] == nullptr) return true;
    json& list = *open_[kAroundItem - 1];
    if (!list.is_array()) return true;
    if (values_ > kMaxItemValues) {
      status_ = InvalidArgument(
          "{}.{}[{}]: has more than {} values", where_.parent, list_, items_, kMaxItemValues);
      return false;
    }
    if (open_.size() > kAroundItem) return true;
    status_ = read_(list_, items_++, list.back());
    list.clear();
    values_ = 0;
    return status_.ok();
  }

  const JsonItemLists& where_;
  const ReadJsonItem& read_;
  json root_;
  std::vector<json*> open_;  // null: what is not kept
  std::string key_;          // the last that came
  std::string list_;
  size_t items_ = 0;   // of the list, that have ended
  size_t values_ = 0;  // since the last item
  absl::Status status_;
};

}  // namespace

absl::StatusOr<json> ReadJsonItems(std::string_view text,
                                   const JsonItemLists& where,
                                   const ReadJsonItem& read) {
  ItemBuilder builder(where, read);
  json::sax_parse(text, &builder);
  RETURN_IF_ERROR(builder.status());
  return builder.TakeRest();
}

}  // namespace fluxqueue::graph
