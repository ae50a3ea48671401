// What is wrong with FluxQueues and FluxWindows before they are applied: their schemas, and what
// admission and the queue would say of them together (parents, cycles, times). Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/fluxqueue/schema_check.h"

namespace fluxqueue::cli {

class ManifestCheck {
 public:
  // Each document of the file; those of other kinds are left alone. False: none was of ours.
  bool Add(const std::string& file, const std::string& text);
  // Of all files, together.
  std::vector<Problem> Finish();

 private:
  struct Object {
    std::string file;
    YAML::Node document;
  };

  // Where the key ("spec.parent") stands, or the object.
  int LineOf(const Object& object, const std::string& sentence) const;
  void CheckTogether();
  void Say(const Object& object, const std::string& sentence);
  // To the object that it begins with: "FluxQueue a: …".
  void SayOfNamed(const std::string& sentence);

  std::vector<Object> queues_;
  std::vector<Object> windows_;
  std::vector<Problem> problems_;
};

}  // namespace fluxqueue::cli
