// UTF-8, RFC 3629. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace fluxqueue {

// U+FFFD: stands for what was there and is no text.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length in bytes of the well-formed sequence that begins at `at`; 0 if there is none: no
// overlong forms, no surrogates, nothing beyond U+10FFFF. REQUIRES: at < text.size().
size_t Utf8Length(std::string_view text, size_t at);

}  // namespace fluxqueue
