// Text that came from outside: what of it may go on, and what it becomes where it may not. All that
// is said, kept and shown inside is valid UTF-8 without control characters, and bounded.
//
// Control characters are those of Unicode (below U+0020, U+007F to U+009F), by which a text
// commands the terminal that shows it, and those that turn the direction of what is shown (U+202A
// to U+202E, U+2066 to U+2069), by which it looks like another.
//
// Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fluxqueue {

// What people are told of a job: a reason, and what was said before it.
inline constexpr size_t kMostMessageBytes = 1500;

// UTF-8 (RFC 3629) without control characters, of at most `most` bytes.
bool IsPlain(std::string_view text, size_t most);

// What the API server makes: 1 to 63 letters, digits and "-". Where a user may write one (an owner
// reference), it may be anything.
bool IsUid(std::string_view text);

// At most `most` bytes of it, between characters; "…" stands for the rest.
// REQUIRES: most >= 3, which "…" takes.
std::string Cut(std::string_view text, size_t most);

// Plain, and cut: a NUL, a control character or a byte that is no UTF-8 becomes U+FFFD; "\n" and
// "\t" stay.
std::string Clean(std::string_view text, size_t most);

}  // namespace fluxqueue
