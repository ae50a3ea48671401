// The terminal: its size, its keys, and screens that are drawn without flicker.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"

namespace fluxqueue::cli {

struct Size {
  size_t columns = 80;
  size_t rows = 24;
};

// Of the terminal at standard output; where there is none, 100 columns.
Size WindowSize();

// The lines of a text, without their ends. Pure.
std::vector<std::string_view> Lines(std::string_view text);

// The first `columns` characters of a line; escape sequences count nothing and stay whole. Pure.
std::string Clip(std::string_view line, size_t columns);

// What draws `text` over what a screen shows, line by line, so that nothing flickers; what does not
// fit is cut off. Pure.
std::string Redraw(std::string_view text, Size size);

// Waits; false at once when nobody reads what is written to `descriptor` any more.
bool WaitWhileOpen(int descriptor, Millis time);

}  // namespace fluxqueue::cli
