// One line on standard error that says how far it is: overwritten in place on a terminal, else a
// new line every ten seconds. One thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace fluxqueue::load {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { Done(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(std::string_view line);
  // The last line stays.
  void Done();

 private:
  const bool terminal_;
  std::string latest_;
  bool shown_ = true;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace fluxqueue::load
