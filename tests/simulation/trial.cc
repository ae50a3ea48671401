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
    case Without::kRow:
      return "row";
    case Without::kSweep:
      return "sweep";
    case Without::kVersion:
      return "version";
    case Without::kUid:
      return "uid";
    case Without::kQuarantine:
      return "quarantine";
  }
  return "";
}

std::optional<Without> WithoutOf(const Subject& subject, std::string_view name) {
  for (const Without without : subject.safeties) {
    if (Name(without) == name) return without;
  }
  return std::nullopt;
}

std::string ListOfSafeties(const Subject& subject) {
  std::string list;
  for (const Without without : subject.safeties) {
    if (!list.empty()) list += ", ";
    list += Name(without);
  }
  return list;
}

}  // namespace fluxqueue::simulation
