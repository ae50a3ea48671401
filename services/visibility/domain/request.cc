#include "services/visibility/domain/request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/kubernetes/names.h"

namespace fluxqueue::visibility {
namespace {

using nlohmann::json;

constexpr size_t kMostNameBytes = 317;  // a kind of 63, a hyphen, a name of 253
constexpr size_t kMostTokenBytes = 256;
constexpr int kMostLimit = 250;

struct Subresource {
  std::string_view name;
  std::string_view method;
  Verb verb;
};
constexpr std::array<Subresource, 5> kSubresources = {{{"explanation", "GET", Verb::kExplain},
                                                       {"cancel", "POST", Verb::kCancel},
                                                       {"hold", "POST", Verb::kHold},
                                                       {"priority", "POST", Verb::kPriority},
                                                       {"move", "POST", Verb::kMove}}};

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string Shown(std::string_view text) {
  return Clean(text, 80);
}

absl::Status NoSuchPath(std::string_view path) {
  return MakeStatus(absl::StatusCode::kNotFound, "there is no {} here", Shown(path));
}

int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped =
        text[i] == '%' && i + 2 < text.size() && Digit(text[i + 1]) >= 0 && Digit(text[i + 2]) >= 0;
    if (escaped) {
      plain.push_back(static_cast<char>(Digit(text[i + 1]) * 16 + Digit(text[i + 2])));
      i += 2;
    } else {
      plain.push_back(text[i] == '+' ? ' ' : text[i]);
    }
  }
  return plain;
}

absl::Status ReadLimit(const std::string& text, int* limit) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, *limit);
  if (read.ec == std::errc() && read.ptr == end && *limit >= 0) {
    *limit = std::min(*limit, kMostLimit);
    return absl::OkStatus();
  }
  return InvalidArgument("limit \"{}\": allowed: a number from 0 on", Shown(text));
}

absl::Status ReadSelector(const std::string& text, Ask* ask) {
  for (const std::string_view term : Split(text, ',')) {
    const size_t equals = term.find('=');
    const std::string_view key = term.substr(0, equals);
    const std::string_view value = equals == term.npos ? "" : term.substr(equals + 1);
    if (key == "ended" && (value == "true" || value == "false")) {
      ask->ended = value == "true";
    } else if (key == "queue" && kubernetes::IsDnsSubdomain(value)) {
      ask->queue = value;
    } else {
      return InvalidArgument("fieldSelector \"{}\": allowed: ended=true, queue=NAME", Shown(term));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadQuery(std::string_view query, Ask* ask) {
  for (const std::string_view parameter : Split(query, '&')) {
    const size_t equals = parameter.find('=');
    // As the API server reads it, which has judged whether it is a list or a watch.
    const std::string key = Unescape(parameter.substr(0, equals));
    const std::string value =
        equals == parameter.npos ? "" : Unescape(parameter.substr(equals + 1));
    if (value.empty()) continue;
    if (key == "limit") {
      RETURN_IF_ERROR(ReadLimit(value, &ask->limit));
    } else if (key == "continue") {
      if (!IsPlain(value, kMostTokenBytes)) return InvalidArgument("continue: no token of ours");
      ask->continue_token = value;
    } else if (key == "fieldSelector") {
      RETURN_IF_ERROR(ReadSelector(value, ask));
    } else if (key == "labelSelector") {
      return InvalidArgument("labelSelector: what is listed here has no labels");
    } else if (key == "watch" && value != "false" && value != "0") {
      return MakeStatus(absl::StatusCode::kUnimplemented,
                        "watch: allowed are get and list; FluxJobs can be watched");
    }
  }
  return absl::OkStatus();
}

// `in`: where the object stands, "spec.".
absl::Status CheckKeys(std::string_view in,
                       const json& object,
                       const std::vector<std::string>& allowed) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
      return InvalidArgument("{}{}: allowed: {}", in, Shown(key), fmt::join(allowed, ", "));
    }
  }
  return absl::OkStatus();
}

// The spec of a command, {"spec": {…}}; an empty body is an empty spec.
absl::StatusOr<json> ReadSpec(std::string_view body) {
  if (body.empty()) return json::object();
  json object = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return InvalidArgument("the body is no JSON object");
  RETURN_IF_ERROR(CheckKeys("", object, {"apiVersion", "kind", "metadata", "spec"}));
  const auto found = object.find("spec");
  json spec = found == object.end() ? json::object() : std::move(*found);
  if (!spec.is_object()) return InvalidArgument("spec: allowed: an object");
  return spec;
}

absl::StatusOr<std::string> ReadText(const json& spec, const char* key, size_t most) {
  const auto it = spec.find(key);
  if (it == spec.end()) return std::string();
  if (it->is_string() && IsPlain(it->get_ref<const std::string&>(), most)) {
    return it->get<std::string>();
  }
  return InvalidArgument("spec.{}: allowed: a text of at most {} bytes", key, most);
}

absl::Status ReadPriority(const json& spec, Ask* ask) {
  const auto it = spec.find("priority");
  using Limits = std::numeric_limits<int32_t>;
  const bool fits = it != spec.end() && it->is_number_integer() &&
                    (!it->is_number_unsigned() || it->get<uint64_t>() <= Limits::max());
  if (fits) {
    const auto value = it->get<int64_t>();
    if (value >= Limits::min() && value <= Limits::max()) {
      ask->priority = static_cast<int32_t>(value);
      return absl::OkStatus();
    }
  }
  return InvalidArgument(
      "spec.priority: required, a number from {} to {}", Limits::min(), Limits::max());
}

absl::Status ReadCommand(std::string_view body, Ask* ask) {
  static const std::map<Verb, std::vector<std::string>> kKeys = {
      {Verb::kCancel, {"clientId"}},
      {Verb::kHold, {"clientId", "held"}},
      {Verb::kPriority, {"clientId", "priority"}},
      {Verb::kMove, {"clientId", "queue"}}};
  ASSIGN_OR_RETURN(const json spec, ReadSpec(body));
  RETURN_IF_ERROR(CheckKeys("spec.", spec, kKeys.at(ask->verb)));
  ASSIGN_OR_RETURN(ask->client_id, ReadText(spec, "clientId", kMostTokenBytes));
  if (ask->verb == Verb::kPriority) return ReadPriority(spec, ask);
  if (ask->verb == Verb::kHold) {
    const json held = spec.value("held", json(true));
    if (!held.is_boolean()) return InvalidArgument("spec.held: allowed: true, false");
    if (!held.get<bool>()) ask->verb = Verb::kRelease;
  }
  if (ask->verb != Verb::kMove) return absl::OkStatus();
  ASSIGN_OR_RETURN(ask->queue_wanted, ReadText(spec, "queue", kMostNameBytes));
  if (kubernetes::IsDnsSubdomain(ask->queue_wanted)) return absl::OkStatus();
  return InvalidArgument("spec.queue: required, the name of a FluxQueue");
}

// Of an object: what its name may be.
absl::Status CheckName(const Ask& ask) {
  const bool good = ask.resource == "jobs"
                        ? kubernetes::IsDnsSubdomain(ask.name.substr(ask.name.find('-') + 1)) &&
                              ask.name.size() <= kMostNameBytes
                        : kubernetes::IsDnsSubdomain(ask.name);
  if (good) return absl::OkStatus();
  return InvalidArgument("\"{}\": no name of one of the {}", Shown(ask.name), ask.resource);
}

absl::Status ReadMethod(std::string_view method,
                        const std::vector<std::string_view>& rest,
                        Ask* ask) {
  const auto refuse = [&](std::string_view allowed) {
    return MakeStatus(absl::StatusCode::kUnimplemented,
                      "{} on {}: allowed is {}",
                      Shown(method),
                      ask->resource,
                      allowed);
  };
  if (rest.size() < 2) {
    ask->verb = rest.empty() ? Verb::kList : Verb::kGet;
    return method == "GET" ? absl::OkStatus() : refuse("GET");
  }
  const auto* const sub = std::find_if(kSubresources.begin(),
                                       kSubresources.end(),
                                       [&](const Subresource& s) { return s.name == rest[1]; });
  if (sub == kSubresources.end() || ask->resource == "queues" || rest.size() > 2) {
    return NoSuchPath(rest[1]);
  }
  ask->verb = sub->verb;
  return method == sub->method ? absl::OkStatus() : refuse(sub->method);
}

}  // namespace

absl::StatusOr<Ask> ReadAsk(std::string_view method,
                            std::string_view path,
                            std::string_view query,
                            std::string_view body) {
  Ask ask;
  std::vector<std::string_view> parts = Split(path, '/');
  if (parts.size() > 2 && parts[0] == "namespaces") {
    ask.space = parts[1];
    if (!kubernetes::IsDnsLabel(ask.space)) {
      return InvalidArgument("\"{}\": no name of a namespace", Shown(parts[1]));
    }
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  ask.resource = parts[0];
  const bool jobs = ask.resource == "jobs";
  const bool known = jobs || ask.resource == "claims" || ask.resource == "queues";
  if (!known || (!jobs && !ask.space.empty())) return NoSuchPath(path);
  parts.erase(parts.begin());
  RETURN_IF_ERROR(ReadMethod(method, parts, &ask));
  if (!parts.empty()) {
    if (jobs && ask.space.empty()) return NoSuchPath(path);
    ask.name = parts[0];
    RETURN_IF_ERROR(CheckName(ask));
  }
  if (ask.verb == Verb::kList) RETURN_IF_ERROR(ReadQuery(query, &ask));
  if (method == "POST") RETURN_IF_ERROR(ReadCommand(body, &ask));
  return ask;
}

absl::Status CheckContentType(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  if (type.empty() || type == "application/json") return absl::OkStatus();
  return InvalidArgument("Content-Type {}: allowed: application/json", Shown(content_type));
}

std::string_view VerbName(Verb verb) {
  switch (verb) {
    case Verb::kList:
      return "list";
    case Verb::kGet:
      return "get";
    case Verb::kExplain:
      return "explanation";
    case Verb::kCancel:
      return "cancel";
    case Verb::kHold:
      return "hold";
    case Verb::kRelease:
      return "release";
    case Verb::kPriority:
      return "priority";
    case Verb::kMove:
      return "move";
  }
  return "";
}

}  // namespace fluxqueue::visibility
