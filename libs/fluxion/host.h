// The process in which Fluxion's library runs: it may die there, and be started again
// (child_context.h).
//
// A request: {"call": "open" | "match" | "restore" | "cancel" | "cancel_part" | "find" | "set_up",
// …}, with the arguments of Context's function by their names. An answer: {"code": the status code,
// "message": its text} and what came back.
#pragma once

#include "libs/fluxion/channel.h"

namespace fluxqueue::fluxion {

// Answers until the other side is gone.
void Serve(Channel* channel);

}  // namespace fluxqueue::fluxion
