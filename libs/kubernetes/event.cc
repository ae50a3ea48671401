#include "libs/kubernetes/event.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/clock.h"
#include "libs/base/text.h"
#include "libs/kubernetes/json_text.h"

namespace fluxqueue::kubernetes {
namespace {

// What the API server takes as a note is 1024 bytes.
constexpr size_t kMostNote = 1000;

// MicroTime has six digits.
std::string MicroTime(std::chrono::system_clock::time_point time) {
  return fmt::format("{}000Z", FormatTime(time).substr(0, 23));
}

}  // namespace

std::string EventText(const Event& event) {
  const ObjectReference& object = event.regarding;
  nlohmann::json meta = {{"namespace", object.space}};
  if (event.name.empty()) {
    meta["generateName"] = "fluxqueue-";
  } else {
    meta["name"] = event.name;
  }
  return JsonText({{"apiVersion", "events.k8s.io/v1"},
                   {"kind", "Event"},
                   {"metadata", std::move(meta)},
                   {"eventTime", MicroTime(event.at)},
                   {"reportingController", fmt::format("fluxqueue.io/{}", event.component)},
                   {"reportingInstance", event.instance},
                   {"action", event.action},
                   {"reason", event.reason},
                   {"type", event.type},
                   {"note", Cut(event.note, kMostNote)},
                   {"regarding",
                    {{"apiVersion", object.api_version},
                     {"kind", object.kind},
                     {"namespace", object.space},
                     {"name", object.name},
                     {"uid", object.uid}}}});
}

}  // namespace fluxqueue::kubernetes
