#include "tools/fluxqueue/terminal.h"

#include <algorithm>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace fluxqueue::cli {

Size WindowSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {.columns = 100};
  // A terminal of the cluster learns its size a moment after the program has started.
  if (size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string Clip(std::string_view line, size_t columns) {
  std::string result;
  size_t shown = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033') {
      // All of ours end with a letter.
      const size_t end = std::min(line.find_first_of("mHJKhl", i), line.size() - 1);
      result += line.substr(i, end - i + 1);
      i = end;
      continue;
    }
    const bool continues = (line[i] & 0xC0) == 0x80;
    if (!continues) ++shown;
    if (shown <= columns) result.push_back(line[i]);
  }
  return result;
}

std::string Redraw(std::string_view text, Size size) {
  std::string screen = "\033[H";
  const std::vector<std::string_view> lines = Lines(text);
  const size_t rows = std::min(lines.size(), size.rows);
  for (size_t i = 0; i < rows; ++i) {
    screen += Clip(lines[i], size.columns) + "\033[K";
    // The last row of a screen has no end: it would scroll.
    if (i + 1 < size.rows) screen += "\r\n";
  }
  return screen + "\033[J";
}

bool WaitWhileOpen(int descriptor, Millis time) {
  pollfd watched{.fd = descriptor, .events = 0, .revents = 0};
  return poll(&watched, 1, static_cast<int>(time.count())) == 0;
}

}  // namespace fluxqueue::cli
