// Events (events.k8s.io/v1): what people are told about an object, in `kubectl describe` of it.
// Pure, thread-safe.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace fluxqueue::kubernetes {

struct ObjectReference {
  std::string api_version{};  // "batch/v1"
  std::string kind{};
  std::string space{};  // namespace
  std::string name{};
  std::string uid{};
};

struct Event {
  // The Event's own: one of a name is written once, the second answer is AlreadyExists. Empty: the
  // API server makes one up.
  std::string name{};
  std::string_view component;  // of ours: "admission"
  std::string instance{};      // the replica
  std::string_view type;       // "Normal", "Warning"
  std::string_view reason;     // one word for programs
  std::string_view action;     // what we were doing
  std::string note{};          // the sentence for people; cut at what the API server takes
  ObjectReference regarding{};
  std::chrono::system_clock::time_point at{};
};

// As the body of a create in the object's namespace.
std::string EventText(const Event& event);

}  // namespace fluxqueue::kubernetes
