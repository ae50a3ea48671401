#include "libs/reapi/session_options.h"

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/json_check.h"

namespace fluxqueue::reapi {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 4;
constexpr std::string_view kKnown =
    "load_format, matcher_name, matcher_policy, traverser_policy, match_format, prune_filters, "
    "reserve_vtx_vec, elapse_time";

absl::Status CheckWhatHasNoEffect(const std::string& key, const json& value) {
  if (key == "reserve_vtx_vec" && !value.is_number_integer()) {
    return InvalidArgument("options.{}: must be an integer, is {}", key, value.dump());
  }
  if (key == "elapse_time" && !value.is_boolean()) {
    return InvalidArgument("options.{}: must be true or false, is {}", key, value.dump());
  }
  return absl::OkStatus();
}

absl::Status ReadLoadFormat(const std::string& value, LoadFormat* format) {
  if (value != "jgf" && value != "rv1exec") {
    return InvalidArgument("options.load_format: must be jgf or rv1exec, is \"{}\"", value);
  }
  *format = value == "jgf" ? LoadFormat::kJgf : LoadFormat::kRv1Exec;
  return absl::OkStatus();
}

absl::Status ReadOption(const std::string& key, const std::string& value, SessionOptions* options) {
  if (key == "load_format") return ReadLoadFormat(value, &options->load_format);
  if (key == "matcher_policy") {
    options->matcher_policy = value;
  } else if (key == "traverser_policy") {
    options->traverser_policy = value;
  } else if (key == "prune_filters") {
    options->prune_filters = value;
  } else if (key == "match_format") {
    ASSIGN_OR_RETURN(options->match_format, graph::ParseSetFormat(value));
  } else if (key != "matcher_name") {
    return InvalidArgument("options.{}: is unknown; known are {}", key, kKnown);
  } else if (value != "CA" && value != "ca") {
    return InvalidArgument("options.matcher_name: must be CA, is \"{}\"", value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SessionOptions> SessionOptions::Parse(std::string_view text) {
  RETURN_IF_ERROR(Annotate(graph::CheckJson(text, {.depth = kMaxDepth}), "options"));
  // It has parsed once: neither an exception nor a discarded value can come of it.
  const json tree = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!tree.is_object()) {
    return InvalidArgument("options: must be an object, is {}", tree.type_name());
  }
  SessionOptions options;
  if (!tree.contains("load_format")) {
    return InvalidArgument("options.load_format: is missing; it must be jgf or rv1exec");
  }
  for (const auto& [key, value] : tree.items()) {
    if (key == "reserve_vtx_vec" || key == "elapse_time") {
      RETURN_IF_ERROR(CheckWhatHasNoEffect(key, value));
      continue;
    }
    if (!value.is_string()) {
      return InvalidArgument("options.{}: must be a string, is {}", key, value.dump());
    }
    RETURN_IF_ERROR(ReadOption(key, value.get_ref<const std::string&>(), &options));
  }
  return options;
}

}  // namespace fluxqueue::reapi
