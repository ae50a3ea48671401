// `fluxqueue replay --step`: events one after the other; at a terminal as they are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tools/fluxqueue/context.h"
#include "tools/fluxqueue/event_step.h"

namespace fluxqueue::cli {

struct StepAnswer {
  enum class Kind { kGo, kSeek, kEnd, kUnknown };
  Kind kind = Kind::kUnknown;
  uint64_t events = 0;  // kGo: that many
  std::string text{};   // kSeek: the next one that names it
};
// Enter, "20", "/team/train", "q".
StepAnswer ParseStepAnswer(std::string_view line);

class StepPrompt {
 public:
  // Asks only where both standard input and output are terminals; else all is shown.
  explicit StepPrompt(const Context& context);

  // Cancelled: no more is wanted.
  absl::Status Show(const EventStep& step);

 private:
  absl::Status Ask();

  const Context& context_;
  const bool asks_;
  int64_t since_ms_;
  uint64_t left_ = 1;   // events to be shown before the next question
  std::string sought_;  // empty: the next event, whatever it is
};

}  // namespace fluxqueue::cli
