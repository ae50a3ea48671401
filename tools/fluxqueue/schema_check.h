// Checks a manifest against the schema of its CustomResourceDefinition, as the API server would:
// the parts of OpenAPI that ours use. Pure.
#pragma once

#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace fluxqueue::cli {

struct Problem {
  std::string file{};
  int line = 0;  // 0: of the whole file
  std::string text{};
};

// The schema in a CustomResourceDefinition.
YAML::Node SchemaOf(const std::string& definition);

// What of `value` the schema does not allow; each problem says key, value and what is allowed.
void CheckSchema(const YAML::Node& schema,
                 const YAML::Node& value,
                 const std::string& key,
                 std::vector<Problem>* problems);

}  // namespace fluxqueue::cli
