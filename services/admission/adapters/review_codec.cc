#include "services/admission/adapters/review_codec.h"

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_text.h"

#include "absl/strings/escaping.h"
#include "simdjson.h"

namespace fluxqueue::admission {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view kApiVersion = "admission.k8s.io/v1";
constexpr std::string_view kKind = "AdmissionReview";

// The helpers below throw simdjson_error; ParseReview alone catches.
std::string Text(ondemand::value value) {
  if (value.is_null()) return {};
  return std::string(std::string_view(value.get_string()));
}

void ReadResource(ondemand::value value, Review* review) {
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "group") {
      review->group = Text(field.value());
    } else if (key == "resource") {
      review->resource = Text(field.value());
    }
  }
}

// Of the API server's own, for the token that it has given a pod.
constexpr std::string_view kPodOfToken = "authentication.kubernetes.io/pod-uid";

void ReadExtra(ondemand::value value, Review* review) {
  if (value.is_null()) return;
  for (auto field : value.get_object()) {
    if (std::string_view(field.unescaped_key()) != kPodOfToken) continue;
    for (auto uid : field.value().get_array()) review->user_pod = Text(uid.value());
  }
}

void ReadUser(ondemand::value value, Review* review) {
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "username") {
      review->user = Text(field.value());
    } else if (key == "groups") {
      ondemand::value groups = field.value();
      if (groups.is_null()) continue;
      for (auto group : groups.get_array()) {
        review->groups.push_back(Text(group.value()));
      }
    } else if (key == "extra") {
      ReadExtra(field.value(), review);
    }
  }
}

void ReadRequest(ondemand::value value, Review* review) {
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "uid") {
      review->uid = Text(field.value());
    } else if (key == "operation") {
      review->operation = Text(field.value());
    } else if (key == "namespace") {
      review->space = Text(field.value());
    } else if (key == "name") {
      review->name = Text(field.value());
    } else if (key == "resource") {
      ReadResource(field.value(), review);
    } else if (key == "subResource") {
      review->subresource = Text(field.value());
    } else if (key == "userInfo") {
      ReadUser(field.value(), review);
    } else if (key == "object") {
      ondemand::value object = field.value();
      if (object.is_null()) continue;
      review->object = std::string(std::string_view(simdjson::to_json_string(object)));
    }
  }
}

struct Head {
  std::string api_version;
  std::string kind;
  bool has_request = false;
};

Head ReadDocument(ondemand::document& document, Review* review) {
  Head head;
  for (auto field : document.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "apiVersion") {
      head.api_version = Text(field.value());
    } else if (key == "kind") {
      head.kind = Text(field.value());
    } else if (key == "request") {
      ondemand::value request = field.value();
      if (request.is_null()) continue;
      head.has_request = true;
      ReadRequest(request, review);
    }
  }
  return head;
}

}  // namespace

absl::StatusOr<Review> ParseReview(std::string_view body) {
  Review review;
  Head head;
  try {
    thread_local ondemand::parser parser;
    const simdjson::padded_string padded(body);
    ondemand::document document = parser.iterate(padded);
    head = ReadDocument(document, &review);
    if (document.current_location().error() == simdjson::SUCCESS) {
      return InvalidArgument("the request body has text after its JSON");
    }
  } catch (const simdjson::simdjson_error& error) {
    return InvalidArgument("the request body is not the JSON of an {}: {}", kKind, error.what());
  }
  if (head.kind != kKind || head.api_version != kApiVersion) {
    return InvalidArgument("the request body is kind '{}' of apiVersion '{}'; expected {} of {}",
                           head.kind,
                           head.api_version,
                           kKind,
                           kApiVersion);
  }
  if (!head.has_request || review.uid.empty()) {
    return InvalidArgument("the {} has no request with a uid", kKind);
  }
  return review;
}

std::string FormatAnswer(std::string_view uid, const Verdict& verdict) {
  const bool allowed = verdict.kind != Verdict::Kind::kRefuse;
  nlohmann::json response = {{"uid", uid}, {"allowed", allowed}};
  if (!allowed) {
    response["status"] = {{"code", 422}, {"reason", "Invalid"}, {"message", verdict.message}};
  } else if (!verdict.patch.empty()) {
    std::string encoded;
    absl::Base64Escape(ToAbsl(verdict.patch), &encoded);
    response["patchType"] = "JSONPatch";
    response["patch"] = std::move(encoded);
  }
  if (!verdict.warnings.empty()) response["warnings"] = verdict.warnings;
  const nlohmann::json review = {
      {"apiVersion", kApiVersion}, {"kind", kKind}, {"response", std::move(response)}};
  return kubernetes::JsonText(review);
}

}  // namespace fluxqueue::admission
