#include "libs/config/section.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "libs/base/status_macros.h"
#include "libs/config/units.h"

namespace fluxqueue::config {
namespace {

template <typename Number>
bool ParseNumber(const std::string& text, Number* out) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *out);
  return result.ec == std::errc() && result.ptr == end;
}

std::string_view KindOf(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      return "nothing";
    case YAML::NodeType::Scalar:
      return "a single value";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a section";
  }
  return "nothing";
}

bool IsAbsent(const YAML::Node& node) {
  return !node.IsDefined() || node.IsNull();
}

std::string Join(const std::string& path, const std::string& key) {
  return path.empty() ? key : fmt::format("{}.{}", path, key);
}

}  // namespace

// One pass over a document: fills what can be filled and collects every problem on its way.
class SectionReader {
 public:
  explicit SectionReader(std::string_view file) : file_(file) {}

  void ReadSection(const YAML::Node& node, const std::string& path, const Section& section) {
    const size_t before = problems_.size();
    if (!IsAbsent(node) && !node.IsMap()) {
      Problem(node,
              path.empty() ? "the file" : path,
              fmt::format("is {}; allowed: a section with the keys {}",
                          KindOf(node),
                          fmt::join(section.Keys(), ", ")));
      return;
    }
    if (!IsAbsent(node)) CheckKeys(node, path, section);
    for (const Section::Field& field : section.fields_) ReadField(node, path, field);
    if (problems_.size() != before) return;
    for (const auto& rule : section.rules_) {
      const absl::Status status = rule();
      if (!status.ok()) Problem(node, path.empty() ? "the file" : path, Message(status));
    }
  }

  void Problem(const YAML::Node& at, const std::string& path, const std::string& what) {
    const YAML::Mark mark = at.IsDefined() ? at.Mark() : YAML::Mark::null_mark();
    const std::string line = mark.is_null() ? "" : fmt::format(":{}", mark.line + 1);
    problems_.push_back(fmt::format("{}{}: {}: {}", file_, line, path, what));
  }

  absl::Status Result() const {
    if (problems_.empty()) return absl::OkStatus();
    return InvalidArgument("{}", fmt::join(problems_, "\n"));
  }

 private:
  void CheckKeys(const YAML::Node& node, const std::string& path, const Section& section) {
    const std::vector<std::string> known = section.Keys();
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "(not a word)";
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        Problem(entry.first,
                Join(path, key),
                fmt::format("unknown key; known here: {}", fmt::join(known, ", ")));
      } else if (!seen.insert(key).second) {
        Problem(entry.first, Join(path, key), "stands here twice; keep one of the two");
      }
    }
  }

  void ReadField(const YAML::Node& parent, const std::string& path, const Section::Field& field) {
    if (!field.scalar && field.list == nullptr && field.section == nullptr) return;
    const std::string name = Join(path, field.key);
    const YAML::Node node =
        IsAbsent(parent) ? YAML::Node(YAML::NodeType::Undefined) : parent[field.key];
    if (field.written != nullptr && node.IsDefined() && node.IsScalar()) {
      *field.written = node.Scalar();
    }
    if (field.section != nullptr) {
      ReadSection(node, name, *field.section);
    } else if (!node.IsDefined()) {
      if (field.presence == Presence::kRequired) {
        Problem(parent, name, fmt::format("is missing; it needs {}", field.allowed));
      }
    } else if (field.list != nullptr) {
      ReadList(node, name, field);
    } else if (!node.IsScalar()) {
      Problem(node, name, fmt::format("is {}; allowed: {}", KindOf(node), field.allowed));
    } else if (const auto text = Expand(node, name); text.has_value() && !field.scalar(*text)) {
      Problem(node, name, fmt::format("\"{}\" is not allowed; allowed: {}", *text, field.allowed));
    }
  }

  void ReadList(const YAML::Node& node, const std::string& name, const Section::Field& field) {
    const bool flat =
        node.IsSequence() && std::all_of(node.begin(), node.end(), [](const YAML::Node& item) {
          return item.IsScalar();
        });
    if (!flat) {
      Problem(node, name, fmt::format("is not {}", field.allowed));
      return;
    }
    field.list->clear();
    for (const YAML::Node& item : node) {
      if (auto text = Expand(item, name)) field.list->push_back(*std::move(text));
    }
  }

  // With the environment's values in it; nothing: one is missing.
  std::optional<std::string> Expand(const YAML::Node& node, const std::string& name) {
    std::string text;
    std::string_view rest = node.Scalar();
    for (size_t at = 0; (at = rest.find("${")) != std::string_view::npos;) {
      const size_t end = rest.find('}', at);
      if (end == std::string_view::npos) break;
      const std::string variable(rest.substr(at + 2, end - at - 2));
      const char* value = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe)
      if (value == nullptr) {
        Problem(node, name, fmt::format("${{{}}} is not set in the environment", variable));
        return std::nullopt;
      }
      text.append(rest.substr(0, at)).append(value);
      rest.remove_prefix(end + 1);
    }
    return text.append(rest);
  }

  std::string_view file_;
  std::vector<std::string> problems_;
};

Section& Section::Scalar(std::string key,
                         std::string allowed,
                         std::function<bool(const std::string&)> read,
                         Presence presence) {
  Field field;
  field.key = std::move(key);
  field.allowed = std::move(allowed);
  field.scalar = std::move(read);
  field.presence = presence;
  fields_.push_back(std::move(field));
  return *this;
}

Section& Section::Text(std::string key, std::string* out, Presence presence) {
  const bool required = presence == Presence::kRequired;
  return Scalar(
      std::move(key),
      required ? "a text that is not empty" : "a text",
      [out, required](const std::string& text) {
        if (required && text.empty()) return false;
        *out = text;
        return true;
      },
      presence);
}

Section& Section::Path(std::string key, std::string* out, Presence presence) {
  Text(std::move(key), out, presence);
  fields_.back().allowed = "the path of a file";
  return *this;
}

Section& Section::AsWritten(std::string* out) {
  fields_.back().written = out;
  return *this;
}

Section& Section::Choice(std::string key, std::string* out, std::vector<std::string> allowed) {
  std::string words = fmt::format("{}", fmt::join(allowed, ", "));
  return Scalar(std::move(key),
                std::move(words),
                [out, allowed = std::move(allowed)](const std::string& text) {
                  if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
                    return false;
                  *out = text;
                  return true;
                });
}

Section& Section::Bool(std::string key, bool* out) {
  return Scalar(std::move(key), "true, false", [out](const std::string& text) {
    *out = text == "true";
    return text == "true" || text == "false";
  });
}

Section& Section::Integer(std::string key,
                          int64_t min,
                          int64_t max,
                          std::function<void(int64_t)> store) {
  return Scalar(std::move(key),
                fmt::format("a whole number from {} to {}", min, max),
                [min, max, store = std::move(store)](const std::string& text) {
                  int64_t value = 0;
                  if (!ParseNumber(text, &value) || value < min || value > max) return false;
                  store(value);
                  return true;
                });
}

Section& Section::Double(std::string key, double* out, double min, double max) {
  return Scalar(std::move(key),
                fmt::format("a number from {} to {}", min, max),
                [out, min, max](const std::string& text) {
                  double value = 0;
                  // Written so that NaN is out of range.
                  if (!ParseNumber(text, &value) || !(value >= min && value <= max)) return false;
                  *out = value;
                  return true;
                });
}

Section& Section::Duration(std::string key, Millis* out, Millis min, Millis max) {
  return Scalar(std::move(key),
                fmt::format("a duration from {} to {}, such as 250ms or 1h30m",
                            FormatDuration(min),
                            FormatDuration(max)),
                [out, min, max](const std::string& text) {
                  const absl::StatusOr<Millis> value = ParseDuration(text);
                  if (!value.ok() || *value < min || *value > max) return false;
                  *out = *value;
                  return true;
                });
}

Section& Section::Size(std::string key, int64_t* out, int64_t min, int64_t max) {
  return Scalar(
      std::move(key),
      fmt::format("a size from {} to {}, such as 64KiB or 3MiB", FormatSize(min), FormatSize(max)),
      [out, min, max](const std::string& text) {
        const absl::StatusOr<int64_t> value = ParseSize(text);
        if (!value.ok() || *value < min || *value > max) return false;
        *out = *value;
        return true;
      });
}

Section& Section::List(std::string key, std::vector<std::string>* out) {
  Field field;
  field.key = std::move(key);
  field.allowed = "a list of texts, such as [a, b]";
  field.list = out;
  fields_.push_back(std::move(field));
  return *this;
}

Section& Section::Nested(std::string key, Section section) {
  Field field;
  field.key = std::move(key);
  field.section = std::make_shared<const Section>(std::move(section));
  fields_.push_back(std::move(field));
  return *this;
}

Section& Section::Ignored(std::string key) {
  Field field;
  field.key = std::move(key);
  fields_.push_back(std::move(field));
  return *this;
}

Section& Section::Rule(std::function<absl::Status()> rule) {
  rules_.push_back(std::move(rule));
  return *this;
}

std::vector<std::string> Section::Keys() const {
  std::vector<std::string> keys;
  keys.reserve(fields_.size());
  for (const Field& field : fields_) keys.push_back(field.key);
  return keys;
}

absl::Status Read(std::string_view file, const std::string& text, const Section& root) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    SectionReader reader(file);
    if (documents.size() > 1) {
      reader.Problem(documents[1], "the file", "has several documents (---); allowed: one");
    }
    reader.ReadSection(documents.empty() ? YAML::Node() : documents[0], "", root);
    return reader.Result();
  } catch (const YAML::Exception& error) {
    return InvalidArgument("{}:{}: is not YAML: {}", file, error.mark.line + 1, error.msg);
  }
}

absl::Status ReadFile(const std::string& path, const Section& root) {
  std::ifstream stream(path);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  if (!stream) {
    return absl::NotFoundError(ToAbsl(fmt::format(
        "{}: cannot read the configuration: {}", path, std::generic_category().message(errno))));
  }
  return Read(path, text.str(), root);
}

}  // namespace fluxqueue::config
