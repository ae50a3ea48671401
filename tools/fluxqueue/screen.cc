#include "tools/fluxqueue/screen.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/terminal.h"

namespace fluxqueue::cli {
namespace {

// The other screen, without a cursor; and back.
constexpr const char* kEnter = "\033[?1049h\033[?25l";
constexpr const char* kLeave = "\033[?25h\033[?1049l";

sigset_t OurSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&signals, signal);
  return signals;
}

void Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno != EINTR && errno != EAGAIN) return;
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
}

Key KeyOf(std::string_view bytes) {
  if (bytes == "q" || bytes == "Q" || bytes == "\x03") return Key::kQuit;
  if (bytes == "k" || bytes == "\033[A" || bytes == "\033OA") return Key::kUp;
  if (bytes == "j" || bytes == "\033[B" || bytes == "\033OB") return Key::kDown;
  if (bytes == "\033[5~") return Key::kPageUp;
  if (bytes == "\033[6~" || bytes == " ") return Key::kPageDown;
  if (bytes == "p") return Key::kPause;
  return Key::kNone;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Screen>> Screen::Open() {
  termios before{};
  if (isatty(STDOUT_FILENO) == 0 || tcgetattr(STDIN_FILENO, &before) != 0) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "it wants a terminal; jobs --watch, queues and nodes say the same to a file");
  }
  const sigset_t signals = OurSignals();
  // Threads made from here on leave them to us.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
  if (descriptor < 0) return Internal("signalfd: {}", strerrordesc_np(errno));
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  Write(kEnter);
  return std::unique_ptr<Screen>(new Screen(descriptor, before));
}

Screen::~Screen() {
  Write(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  close(signals_);
  const sigset_t signals = OurSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void Screen::Draw(const std::string& text) {
  Write(Redraw(text, WindowSize()));
}

Key Screen::Wait(Millis time) {
  if (!typed_.empty()) return TakeKey(&typed_);
  std::array<pollfd, 2> watched = {pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = signals_, .events = POLLIN, .revents = 0}};
  if (poll(watched.data(), watched.size(), static_cast<int>(time.count())) <= 0) return Key::kNone;
  if (watched[1].revents != 0) {
    signalfd_siginfo signal{};
    const bool read_it = read(signals_, &signal, sizeof signal) == sizeof signal;
    return read_it && signal.ssi_signo == SIGWINCH ? Key::kResize : Key::kQuit;
  }
  std::array<char, 16> bytes{};
  const ssize_t n = read(STDIN_FILENO, bytes.data(), bytes.size());
  // The terminal has gone.
  if (n <= 0) return Key::kQuit;
  typed_.assign(bytes.data(), static_cast<size_t>(n));
  return TakeKey(&typed_);
}

Key TakeKey(std::string* bytes) {
  // A letter or a sequence: escape, "[" or "O", numbers, and what ends it.
  size_t size = 1;
  if (bytes->size() > 1 && (*bytes)[0] == '\033') {
    size = std::min(bytes->find_first_not_of("0123456789;", 2), bytes->size() - 1) + 1;
  }
  const std::string key = bytes->substr(0, size);
  bytes->erase(0, size);
  return KeyOf(key);
}

}  // namespace fluxqueue::cli
