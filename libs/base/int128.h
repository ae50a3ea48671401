// For products of two 64-bit numbers.
#pragma once

namespace fluxqueue {

__extension__ using Int128 = __int128;

}  // namespace fluxqueue
