#include "tools/fluxqueue/manifest_check.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/kafka/topics.h"
#include "libs/kubernetes/views.h"
#include "libs/queue_core/queue_spec.h"
#include "services/admission/domain/catalog.h"

#include "manifests.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

// As the API server would have it: plain words may be numbers and truth values, quoted ones not.
json ToJson(const YAML::Node& node) {
  if (node.IsMap()) {
    json object = json::object();
    for (const auto& entry : node) object[entry.first.as<std::string>()] = ToJson(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    json array = json::array();
    for (const auto& item : node) array.push_back(ToJson(item));
    return array;
  }
  if (!node.IsScalar()) return nullptr;
  const auto text = node.as<std::string>();
  if (node.Tag() != "!") {
    json read = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (read.is_number() || read.is_boolean()) return read;
  }
  return text;
}

const YAML::Node& SchemaFor(const std::string& kind) {
  static const YAML::Node kQueue = SchemaOf(kFluxQueue);
  static const YAML::Node kWindow = SchemaOf(kFluxWindow);
  return kind == "FluxQueue" ? kQueue : kWindow;
}

std::string NameOf(const YAML::Node& document) {
  const YAML::Node meta = document["metadata"];
  return meta && meta.IsMap() ? meta["name"].as<std::string>("") : "";
}

}  // namespace

bool ManifestCheck::Add(const std::string& file, const std::string& text) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    problems_.push_back({file, error.mark.line + 1, error.msg});
    return true;
  }
  bool ours = false;
  for (const YAML::Node& document : documents) {
    const std::string kind =
        document.IsMap() ? document["kind"].as<std::string>("") : std::string();
    if (kind != "FluxQueue" && kind != "FluxWindow") continue;
    ours = true;
    const size_t before = problems_.size();
    CheckSchema(SchemaFor(kind), document, "", &problems_);
    if (NameOf(document).empty()) {
      problems_.push_back({.line = document.Mark().line + 1, .text = "metadata.name is missing"});
    }
    for (size_t i = before; i < problems_.size(); ++i) problems_[i].file = file;
    if (problems_.size() == before) {
      (kind == "FluxQueue" ? queues_ : windows_).push_back({file, document});
    }
  }
  return ours;
}

int ManifestCheck::LineOf(const Object& object, const std::string& sentence) const {
  if (const YAML::Node spec = object.document["spec"]) {
    for (const auto& entry : spec) {
      if (sentence.find("spec." + entry.first.as<std::string>()) != std::string::npos) {
        return entry.first.Mark().line + 1;
      }
    }
  }
  return object.document.Mark().line + 1;
}

void ManifestCheck::Say(const Object& object, const std::string& sentence) {
  problems_.push_back({object.file, LineOf(object, sentence), sentence});
}

void ManifestCheck::SayOfNamed(const std::string& sentence) {
  for (const auto* objects : {&queues_, &windows_}) {
    const char* kind = objects == &queues_ ? "FluxQueue" : "FluxWindow";
    for (const Object& object : *objects) {
      if (sentence.starts_with(fmt::format("{} {}:", kind, NameOf(object.document)))) {
        Say(object, sentence);
      }
    }
  }
}

void ManifestCheck::CheckTogether() {
  admission::ClusterFacts facts;
  for (const Object& object : queues_) {
    auto queue = kubernetes::ParseFluxQueue(ToJson(object.document).dump());
    if (queue.ok()) {
      facts.Upsert(*std::move(queue));
    } else {
      Say(object, Message(queue.status()));
    }
  }
  for (const Object& object : windows_) {
    auto window = kubernetes::ParseFluxWindow(ToJson(object.document).dump());
    if (window.ok()) {
      facts.Upsert(*std::move(window));
    } else {
      Say(object, Message(window.status()));
    }
  }
  admission::Catalog catalog({}, kafka::kPoolPartitions);
  std::vector<events::v1::Envelope> messages;
  std::vector<std::string> sentences;
  catalog.Reconcile(facts.queues(), &messages, &sentences);
  catalog.ReconcileWindows(facts.windows(), &messages, &sentences);
  for (const events::v1::Envelope& message : messages) {
    if (!message.has_queue_configured()) continue;
    const absl::Status status = queue_core::CheckQueue(message.queue_configured());
    if (!status.ok()) {
      sentences.push_back(
          fmt::format("FluxQueue {}: {}", message.queue_configured().queue(), Message(status)));
    }
  }
  for (const std::string& sentence : sentences) SayOfNamed(sentence);
}

std::vector<Problem> ManifestCheck::Finish() {
  CheckTogether();
  return std::move(problems_);
}

}  // namespace fluxqueue::cli
