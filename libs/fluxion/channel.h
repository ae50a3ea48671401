// Messages of JSON between this process and another, over one socket of a pair.
//
// A message: its length in bytes (32 bits, little-endian), then the text. Not thread-safe.
#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>

#include "libs/base/clock.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::fluxion {

class Channel {
 public:
  // A graph of a hundred thousand nodes is some hundreds of megabytes.
  static constexpr size_t kMaxMessage = size_t{1} << 30;

  // Owns the socket.
  explicit Channel(int socket);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Unavailable: the other side is gone. DeadlineExceeded: it did not read, or say, all of the
  // message in that time; the channel is then of no use any more. Zero: however long it takes.
  absl::Status Send(const nlohmann::json& message, Millis timeout);
  absl::StatusOr<nlohmann::json> Receive(Millis timeout);

 private:
  int socket_;
};

}  // namespace fluxqueue::fluxion
