// A terminal that belongs to us alone, until the object goes: keys come one by one, what is drawn
// is not left behind. Signals that end the program or change the size come as keys, too.
#pragma once

#include <memory>
#include <string>

#include <termios.h>

#include "libs/base/clock.h"

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

enum class Key { kNone, kQuit, kUp, kDown, kPageUp, kPageDown, kPause, kResize };

class Screen {
 public:
  // FailedPrecondition: standard input and output are not a terminal. One at a time.
  static absl::StatusOr<std::unique_ptr<Screen>> Open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Draws over what is shown.
  void Draw(const std::string& text);
  // The next key; kNone when none is hit in time.
  Key Wait(Millis time);

 private:
  Screen(int signals, const termios& before) : signals_(signals), before_(before) {}

  const int signals_;  // a descriptor
  const termios before_;
  std::string typed_;  // and not taken yet
};

// Takes what a terminal has sent for one key off the front of `bytes`, which are not empty; kNone
// for a key that means nothing here. Pure.
Key TakeKey(std::string* bytes);

}  // namespace fluxqueue::cli
