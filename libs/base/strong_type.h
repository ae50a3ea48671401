// Strong types for ids and units: StrongString<struct JobIdTag>, StrongInt<struct MillicoresTag>.
// Explicit in, explicit out (`value()`), ordered, hashable, printable by fmt.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fluxqueue {

template <typename Tag>
class StrongString {
 public:
  StrongString() = default;
  explicit StrongString(std::string value) : value_(std::move(value)) {}
  explicit StrongString(std::string_view value) : value_(value) {}
  explicit StrongString(const char* value) : value_(value) {}

  const std::string& value() const { return value_; }
  bool empty() const { return value_.empty(); }

  friend bool operator==(const StrongString&, const StrongString&) = default;
  friend auto operator<=>(const StrongString&, const StrongString&) = default;

 private:
  std::string value_;
};

template <typename Tag>
class StrongInt {
 public:
  constexpr StrongInt() = default;
  explicit constexpr StrongInt(int64_t value) : value_(value) {}

  constexpr int64_t value() const { return value_; }

  friend constexpr bool operator==(StrongInt, StrongInt) = default;
  friend constexpr auto operator<=>(StrongInt, StrongInt) = default;

 private:
  int64_t value_ = 0;
};

}  // namespace fluxqueue

template <typename Tag>
struct std::hash<fluxqueue::StrongString<Tag>> {
  size_t operator()(const fluxqueue::StrongString<Tag>& id) const {
    return std::hash<std::string>()(id.value());
  }
};

template <typename Tag>
struct std::hash<fluxqueue::StrongInt<Tag>> {
  size_t operator()(fluxqueue::StrongInt<Tag> id) const { return std::hash<int64_t>()(id.value()); }
};

template <typename Tag>
struct fmt::formatter<fluxqueue::StrongString<Tag>> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const fluxqueue::StrongString<Tag>& id, Context& context) const {
    return fmt::formatter<std::string_view>::format(id.value(), context);
  }
};

template <typename Tag>
struct fmt::formatter<fluxqueue::StrongInt<Tag>> : fmt::formatter<int64_t> {
  template <typename Context>
  auto format(fluxqueue::StrongInt<Tag> id, Context& context) const {
    return fmt::formatter<int64_t>::format(id.value(), context);
  }
};
