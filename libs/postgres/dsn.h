// What a DSN names, and whether it answers.
#pragma once

#include <string>

#include "libs/base/clock.h"

#include "absl/status/status.h"

namespace fluxqueue::postgres {

// What of it may be shown: "Postgres user=… host=…", everything but the password.
std::string DescribeDsn(const std::string& dsn);

// The DSN with limits of its own: a server that has vanished must not hold us for the kernel's
// quarter of an hour. `connect` is rounded down to seconds; 1 is the least.
std::string DsnWithTimeouts(const std::string& dsn, Millis connect);

// Whether a server answers there at all: OK also from one that still starts, or would not let us
// in. Unavailable names the server: it does not answer within `patience` (libpq: 2 s at least, for
// each address). InvalidArgument: the DSN does not parse. Any thread.
absl::Status Ping(const std::string& dsn, Millis patience);

}  // namespace fluxqueue::postgres
