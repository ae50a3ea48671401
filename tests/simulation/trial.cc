#include "tests/simulation/trial.h"

namespace fluxqueue::simulation {

std::string_view Name(Without without) {
  switch (without) {
    case Without::kNothing:
      return "";
    case Without::kEpoch:
      return "epoch";
    case Without::kSequence:
      return "sequence";
    case Without::kIncarnation:
      return "incarnation";
    case Without::kSettle:
      return "settle";
    case Without::kUndo:
      return "undo";
  }
  return "";
}

std::optional<Without> WithoutOf(std::string_view name) {
  for (const Without without : kSafeties) {
    if (Name(without) == name) return without;
  }
  return std::nullopt;
}

std::string ListOfSafeties() {
  std::string list;
  for (const Without without : kSafeties) {
    if (!list.empty()) list += ", ";
    list += Name(without);
  }
  return list;
}

}  // namespace fluxqueue::simulation
