#include "libs/graph/yaml_tree.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "libs/base/status_macros.h"
#include "libs/base/utf8.h"
#include "libs/graph/json_check.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;

constexpr size_t kMaxTextBytes = size_t{4} * 1024 * 1024;

template <typename Number>
std::optional<Number> WholeNumber(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

// "012" and "1_000" are text: a hostlist or a rank may look like that.
bool LooksLikeNumber(const std::string& text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  if (at == text.size() || text[at] < '0' || text[at] > '9') return false;
  return text[at] != '0' || at + 1 == text.size() || text[at + 1] == '.' || text[at + 1] == 'e';
}

json PlainScalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null") return nullptr;
  if (text == "true") return true;
  if (text == "false") return false;
  if (!LooksLikeNumber(text)) return text;
  if (const auto number = WholeNumber<uint64_t>(text)) return *number;
  if (const auto number = WholeNumber<int64_t>(text)) return *number;
  if (const auto number = WholeNumber<double>(text)) return *number;
  return text;
}

// The byte at which the text stops being UTF-8.
std::optional<size_t> InvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

// Builds the tree from the parser's events. Throws YAML::ParserException, which ReadYaml catches.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlRules& rules) : rules_(rules) {}

  json Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Count(mark, 1, 0);
    Add(mark, nullptr, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) Fail(mark, "an alias stands inside what it names");
    const Anchor& anchored = found->second;
    Count(mark, anchored.values, anchored.bytes);
    Add(mark, anchored.value, 0);
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    Count(mark, 1, value.size());
    // yaml-cpp makes one byte each of "\N" and "\_", as if the text were Latin-1.
    if (InvalidUtf8(value)) Fail(mark, "has an escape sequence that makes no UTF-8");
    // The parser's tag for what was written without quotes.
    const bool plain = tag == "?";
    if (plain && InQuotedList()) {
      Fail(mark, fmt::format("{} must be in quotes: \"{}\"", rules_.quoted_lists, value));
    }
    Add(mark, plain ? PlainScalar(value) : json(value), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string&,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Push(mark, json::array(), anchor);
  }
  void OnSequenceEnd() override { Pop(); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string&,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Push(mark, json::object(), anchor);
  }
  void OnMapEnd() override { Pop(); }

 private:
  struct Anchor {
    json value;
    size_t values = 0;
    size_t bytes = 0;
  };
  struct Open {
    YAML::Mark mark;
    json value;
    YAML::anchor_t anchor;
    size_t values_before;
    size_t bytes_before;
    std::optional<std::string> key;  // of an object: the one whose value comes next
  };

  [[noreturn]] static void Fail(const YAML::Mark& mark, const std::string& what) {
    throw YAML::ParserException(mark, what);
  }
  void Count(const YAML::Mark& mark, size_t values, size_t bytes) {
    values_ += values;
    bytes_ += bytes;
    if (values_ > rules_.max_values) {
      Fail(mark, fmt::format("has more than {} values", rules_.max_values));
    }
    if (bytes_ > kMaxTextBytes) {
      Fail(mark, fmt::format("has more than {} bytes of text, aliases filled in", kMaxTextBytes));
    }
  }
  bool InQuotedList() const {
    return open_.size() >= 2 && open_.back().value.is_array() &&
           open_[open_.size() - 2].key == rules_.quoted_lists;
  }

  void Push(const YAML::Mark& mark, json value, YAML::anchor_t anchor) {
    if (open_.size() >= static_cast<size_t>(rules_.max_depth)) {
      Fail(mark, fmt::format("is nested deeper than {} levels", rules_.max_depth));
    }
    const size_t values_before = values_;
    Count(mark, 1, 0);
    open_.push_back({mark, std::move(value), anchor, values_before, bytes_, std::nullopt});
  }
  void Pop() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (done.anchor != 0) {
      anchors_[done.anchor] = {
          done.value, values_ - done.values_before, bytes_ - done.bytes_before};
    }
    Place(done.mark, std::move(done.value));
  }
  void Add(const YAML::Mark& mark, json value, YAML::anchor_t anchor) {
    if (anchor != 0) {
      anchors_[anchor] = {value, 1, value.is_string() ? value.get_ref<std::string&>().size() : 0};
    }
    Place(mark, std::move(value));
  }

  void Place(const YAML::Mark& mark, json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.value.is_array()) {
      parent.value.push_back(std::move(value));
    } else if (parent.key.has_value()) {
      parent.value[*parent.key] = std::move(value);
      parent.key.reset();
    } else {
      parent.key = KeyOf(mark, value);
      if (parent.value.contains(*parent.key)) {
        Fail(mark, fmt::format("the key \"{}\" stands twice in one mapping", *parent.key));
      }
    }
  }
  static std::string KeyOf(const YAML::Mark& mark, const json& value) {
    if (value.is_structured()) Fail(mark, "a key must be a single value");
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  const YamlRules& rules_;
  size_t values_ = 0;
  size_t bytes_ = 0;
  json root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchor> anchors_;
};

// That it is UTF-8 and has no control characters, which YAML forbids: yaml-cpp takes U+0004 for the
// end of the text, and NUL for a sign of another encoding.
absl::Status CheckCharacters(std::string_view text) {
  if (const auto at = InvalidUtf8(text)) return InvalidArgument("is no UTF-8 (byte {})", *at);
  for (size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < ' ' && c != '\t' && c != '\n' && c != '\r') {
      return InvalidArgument("has a control character (byte {})", at);
    }
  }
  return absl::OkStatus();
}

// JSON is YAML, save that YAML has no characters in two halves ("\ud83d\ude00"), as JSON's writers
// make them. What does not pass here is for YAML's parser to judge.
std::optional<json> ReadAsJson(std::string_view text, const YamlRules& rules) {
  const JsonLimits limits = {.depth = rules.max_depth, .values = rules.max_values};
  if (!CheckJson(text, limits).ok()) return std::nullopt;
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

absl::StatusOr<json> ReadYaml(std::string_view text, const YamlRules& rules) {
  RETURN_IF_ERROR(CheckCharacters(text));
  if (std::optional<json> tree = ReadAsJson(text, rules)) return *std::move(tree);
  TreeBuilder builder(rules);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return InvalidArgument("is empty");
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null()) return InvalidArgument("is no YAML: {}", error.msg);
    return InvalidArgument(
        "line {}, column {}: {}", error.mark.line + 1, error.mark.column + 1, error.msg);
  }
  return builder.Take();
}

}  // namespace fluxqueue::graph
