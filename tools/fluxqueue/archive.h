// A tar.gz in memory. Pure.
#pragma once

#include <string>
#include <string_view>

#include "libs/base/clock.h"

namespace fluxqueue::cli {

class Archive {
 public:
  // Its files are in `folder`, and of this time.
  Archive(std::string folder, Millis time) : folder_(std::move(folder)), time_(time) {}

  // Folder and name have less than 100 characters together.
  void Add(const std::string& name, std::string_view content);
  // The whole, packed.
  std::string Pack() const;

 private:
  const std::string folder_;
  const Millis time_;
  std::string tar_;
};

// `text` without passwords and tokens: "password=…", "user:…@host", and values of keys that are
// called so.
std::string Redacted(const std::string& text);

}  // namespace fluxqueue::cli
