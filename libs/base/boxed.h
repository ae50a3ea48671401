// A value that is seldom there, behind a pointer: what holds many of them pays 8 bytes for each
// that is unset, however large it would be. Used like std::optional, and copied as deeply.
//
//   struct Entry {
//     Boxed<GroupMember> member;
//   };
//   if (entry.member) Use(*entry.member);
//
// Unlike std::optional one that was moved from is unset, and moving one does not move its value.
// Thread-compatible. References to the value live until it is reset, assigned to or moved over.
#pragma once

#include <memory>
#include <utility>

namespace fluxqueue {

template <typename T>
class Boxed {
 public:
  Boxed() = default;
  Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT(*-explicit-*)
  Boxed(const Boxed& other) : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(Boxed other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Boxed() = default;

  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  // REQUIRES: has_value(), as of ->.
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }

  // What was there goes.
  T& emplace() { return *(value_ = std::make_unique<T>()); }
  void reset() { value_.reset(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace fluxqueue
