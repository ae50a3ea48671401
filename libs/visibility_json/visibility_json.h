// Messages of the queue's API as JSON, as the aggregated API visibility.fluxqueue.io shows them and
// its clients read them: protobuf's JSON, with each state as people know it ("Running" for
// STATE_RUNNING). Pure, thread-safe.
#pragma once

#include <string>

#include <google/protobuf/message.h>
#include <nlohmann/json_fwd.hpp>

#include "fluxqueue/queue/v1/queue.pb.h"

#include "absl/status/status.h"

namespace fluxqueue::visibility {

inline constexpr char kGroup[] = "visibility.fluxqueue.io";
inline constexpr char kVersion[] = "v1alpha1";

nlohmann::json ToJson(const google::protobuf::Message& message);
// What it does not know is left out. InvalidArgument: a field is not what the message has.
absl::Status FromJson(nlohmann::json value, google::protobuf::Message* message);

// "Running"
std::string StateName(queue::v1::State state);
// How the group calls it: as its FluxJob, "job-hello"; a claim by its id.
std::string ObjectName(const queue::v1::Job& job);

}  // namespace fluxqueue::visibility
