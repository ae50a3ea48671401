#include "services/admission/adapters/sketch_reader.h"

#include <functional>
#include <string>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/places.h"

#include "fmt/format.h"
#include "simdjson.h"

namespace fluxqueue::admission {
namespace {

namespace dom = simdjson::dom;

// What is missing or of another type reads as empty: the sketch only decides whether the object is
// read whole, and that names such errors.
std::string_view Text(dom::element value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? text : std::string_view();
}

template <typename Each>
void ForEachField(dom::element value, Each each) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return;
  for (const dom::key_value_pair field : object) each(field.key, field.value);
}

template <typename Each>
void ForEachItem(dom::element value, Each each) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return;
  for (const dom::element item : array) each(item);
}

void AddToDigest(std::string_view text, Sketch* sketch) {
  sketch->digest = sketch->digest * 0x9e3779b97f4a7c15 + std::hash<std::string_view>()(text) + 1;
}

void AddMapToDigest(std::string_view name, dom::element map, Sketch* sketch) {
  AddToDigest(name, sketch);
  ForEachField(map, [&](std::string_view key, dom::element value) {
    AddToDigest(key, sketch);
    AddToDigest(Text(value), sketch);
  });
}

void ReadOwner(dom::element owner, Sketch* sketch) {
  std::string_view api_version;
  std::string_view kind;
  std::string_view uid;
  bool controller = false;
  ForEachField(owner, [&](std::string_view key, dom::element value) {
    if (key == "apiVersion") {
      api_version = Text(value);
    } else if (key == "kind") {
      kind = Text(value);
    } else if (key == "uid") {
      uid = Text(value);
    } else if (key == "controller" && value.get(controller) != simdjson::SUCCESS) {
      controller = false;
    }
  });
  if (!controller || sketch->kind != WorkloadKind::kPod) return;
  if (kind == "Job" && api_version == "batch/v1" && IsUid(uid)) {
    sketch->controller_job = std::string(uid);
  }
}

void ReadLabels(dom::element labels, Sketch* sketch) {
  AddMapToDigest("labels", labels, sketch);
  dom::element held;
  sketch->held = labels[kubernetes::kHeldLabel].get(held) == simdjson::SUCCESS;
}

// `group` becomes its record and its maker.
void ReadAnnotations(dom::element annotations, Sketch* sketch) {
  AddMapToDigest("annotations", annotations, sketch);
  std::string_view record;
  std::string_view user;
  ForEachField(annotations, [&](std::string_view key, dom::element value) {
    if (key == kubernetes::kGroupAnnotation) {
      record = Text(value);
    } else if (key == kubernetes::kUserAnnotation) {
      user = Text(value);
    } else if (key == kubernetes::kPlaceOfAnnotation && sketch->kind == WorkloadKind::kPod) {
      sketch->in_place = IsUid(Text(value));
    }
  });
  if (!record.empty()) sketch->group = fmt::format("{}/{}", record, user);
}

void ReadMetadata(std::string_view key, dom::element value, Sketch* sketch) {
  if (key == "name") {
    sketch->name = std::string(Text(value));
  } else if (key == "namespace") {
    sketch->space = std::string(Text(value));
  } else if (key == "uid") {
    sketch->uid = std::string(Text(value));
  } else if (key == "resourceVersion") {
    sketch->resource_version = std::string(Text(value));
  } else if (key == "deletionTimestamp") {
    sketch->going = !value.is_null();
  } else if (key == "generation") {
    int64_t generation = 0;
    if (value.get(generation) == simdjson::SUCCESS) {
      sketch->digest = sketch->digest * 31 + static_cast<uint64_t>(generation);
    }
  } else if (key == "annotations") {
    ReadAnnotations(value, sketch);
  } else if (key == "labels") {
    ReadLabels(value, sketch);
  } else if (key == "ownerReferences") {
    ForEachItem(value, [&](dom::element owner) { ReadOwner(owner, sketch); });
  }
}

void ReadCondition(dom::element condition, Sketch* sketch) {
  std::string_view type;
  std::string_view status;
  ForEachField(condition, [&](std::string_view key, dom::element value) {
    if (key == "type") {
      type = Text(value);
    } else if (key == "status") {
      status = Text(value);
    }
  });
  if ((type == "Complete" || type == "Failed") && status == "True") sketch->ended = true;
}

void ReadStatus(std::string_view key, dom::element value, Sketch* sketch) {
  if (sketch->kind == WorkloadKind::kJob && key == "conditions") {
    ForEachItem(value, [&](dom::element condition) { ReadCondition(condition, sketch); });
  } else if (sketch->kind == WorkloadKind::kPod && key == "phase") {
    const std::string_view phase = Text(value);
    sketch->ended = phase == "Succeeded" || phase == "Failed";
  }
}

}  // namespace

absl::StatusOr<Sketch> ReadSketch(WorkloadKind kind, std::string_view json) {
  thread_local dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root); error) {
    return InvalidArgument(
        "a {} that cannot be read: {}", KindName(kind), simdjson::error_message(error));
  }
  Sketch sketch;
  sketch.kind = kind;
  sketch.digest = 1;
  ForEachField(root, [&](std::string_view part, dom::element fields) {
    if (part == "metadata") {
      ForEachField(fields, [&](std::string_view key, dom::element value) {
        ReadMetadata(key, value, &sketch);
      });
    } else if (part == "spec" && kind == WorkloadKind::kPod) {
      dom::element node;
      sketch.bound = fields["nodeName"].get(node) == simdjson::SUCCESS && !Text(node).empty();
    } else if (part == "status") {
      ForEachField(fields, [&](std::string_view key, dom::element value) {
        ReadStatus(key, value, &sketch);
      });
    }
  });
  if (!sketch.group.empty()) sketch.group = fmt::format("{}/{}", sketch.space, sketch.group);
  sketch.in_place = sketch.in_place && sketch.controller_job.empty();
  if (sketch.uid.empty()) return InvalidArgument("a {} without metadata.uid", KindName(kind));
  if (sketch.digest == 0) sketch.digest = 1;
  return sketch;
}

}  // namespace fluxqueue::admission
