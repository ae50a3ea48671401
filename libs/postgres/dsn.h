// What a DSN names, and whether it answers.
#pragma once

#include <string>

#include "libs/base/clock.h"

#include "absl/status/status.h"

namespace fluxqueue::postgres {

// What of it may be shown: "Postgres user=… host=…", everything but the password.
std::string DescribeDsn(const std::string& dsn);

// Whether the text itself holds a password (of the user, or of the client's key), in any of the
// forms that libpq takes. ${NAME} is the environment's, and a passfile is a file of its own:
// neither counts.
bool HoldsPassword(const std::string& dsn);

// How the connection is protected: libpq's sslmode as the DSN or $PGSSLMODE says. Where neither
// does: verify-full, but empty on this machine itself (loopback, a socket), where libpq decides.
std::string TlsMode(const std::string& dsn);

// InvalidArgument: it does not parse, has a DSN in place of a database's name, or has an sslmode
// that goes on without TLS when the server offers none, so also when somebody in between says so.
absl::Status CheckDsn(const std::string& dsn);

// The DSN with TlsMode, and with limits of its own: a host that has vanished must not hold us for
// the kernel's quarter of an hour, nor, where it has acknowledged all that we sent, for two hours.
// `connect` is rounded down to seconds; 1 is the least.
std::string DsnToConnect(const std::string& dsn, Millis connect);

// Whether a server answers there at all: OK also from one that still starts, or would not let us
// in. Unavailable names the server: it does not answer within `patience` (libpq: 2 s at least, for
// each address). InvalidArgument: see CheckDsn. Any thread.
absl::Status Ping(const std::string& dsn, Millis patience);

}  // namespace fluxqueue::postgres
