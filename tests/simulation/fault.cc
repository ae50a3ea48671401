#include "tests/simulation/fault.h"

#include <fmt/format.h>

namespace fluxqueue::simulation {
namespace {

// Two thirds of those who stand still do so within a transaction: at any step they would hardly
// ever meet it, and what guards it would never matter.
Fault::Kind DrawFreeze(const Fault& fault) {
  return fault.time.count() % 3 == 0 ? Fault::Kind::kFreeze : Fault::Kind::kFreezeInCommit;
}

Fault::Kind KindOf(uint64_t drawn, const Fault& fault) {
  switch (drawn) {
    case 0:
    case 1:
      return Fault::Kind::kEnd;
    case 2:
      return DrawFreeze(fault);
    case 3:
      return Fault::Kind::kBrokersAway;
    case 4:
      return Fault::Kind::kDatabaseAway;
    case 5:
      return Fault::Kind::kProducersFail;
    case 6:
      return Fault::Kind::kCommitsFail;
    case 7:
      return Fault::Kind::kFenced;
    case 8:
      return Fault::Kind::kNodeAway;
    case 9:
      return Fault::Kind::kNodeSilent;
    case 10:
      return Fault::Kind::kClusterAway;
    case 11:
      return fault.time.count() % 2 == 0 ? Fault::Kind::kWatchesCut : Fault::Kind::kWatchesExpire;
    case 12:
      return Fault::Kind::kWatchesLag;
    default:
      return Fault::Kind::kCallsFail;
  }
}

}  // namespace

std::string_view Name(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kEnd:
      return "end";
    case Fault::Kind::kFreeze:
      return "freeze";
    case Fault::Kind::kFreezeInCommit:
      return "freeze in commit";
    case Fault::Kind::kBrokersAway:
      return "brokers away";
    case Fault::Kind::kDatabaseAway:
      return "database away";
    case Fault::Kind::kProducersFail:
      return "producers fail";
    case Fault::Kind::kCommitsFail:
      return "commits fail";
    case Fault::Kind::kFenced:
      return "fenced";
    case Fault::Kind::kNodeAway:
      return "node away";
    case Fault::Kind::kNodeSilent:
      return "node silent";
    case Fault::Kind::kClusterAway:
      return "cluster away";
    case Fault::Kind::kCallsFail:
      return "calls fail";
    case Fault::Kind::kWatchesCut:
      return "watches cut";
    case Fault::Kind::kWatchesExpire:
      return "watches expire";
    case Fault::Kind::kWatchesLag:
      return "watches lag";
    case Fault::Kind::kCommitsLost:
      return "commits lost";
    case Fault::Kind::kClusterBack:
      return "cluster back";
  }
  return "";
}

std::string Describe(const Fault& fault, const std::vector<std::string>& places) {
  std::string text =
      fmt::format("{:6.3f} s  {}", static_cast<double>(fault.at.count()) / 1000, Name(fault.kind));
  switch (fault.kind) {
    case Fault::Kind::kEnd:
    case Fault::Kind::kFreeze:
    case Fault::Kind::kFreezeInCommit:
      text += fmt::format(": {}", places[fault.place]);
      break;
    case Fault::Kind::kNodeAway:
    case Fault::Kind::kNodeSilent:
      text += fmt::format(": n{}", fault.node);
      break;
    case Fault::Kind::kCommitsLost:
    case Fault::Kind::kClusterBack:
      return text + fmt::format(": {}", fault.commits);
    case Fault::Kind::kFenced:
    case Fault::Kind::kWatchesCut:
    case Fault::Kind::kWatchesExpire:
      return text;
    case Fault::Kind::kClusterAway:
    case Fault::Kind::kCallsFail:
    case Fault::Kind::kWatchesLag:
    case Fault::Kind::kBrokersAway:
    case Fault::Kind::kDatabaseAway:
    case Fault::Kind::kProducersFail:
    case Fault::Kind::kCommitsFail:
      break;
  }
  return text + fmt::format(", for {:.3f} s", static_cast<double>(fault.time.count()) / 1000);
}

std::vector<Fault> DrawFaults(Chance& chance, size_t places, int nodes, bool cluster) {
  // Calls that fail are two of the cluster's kinds.
  const uint64_t kinds = cluster ? 15 : nodes > 0 ? 9 : 8;
  std::vector<Fault> faults(static_cast<size_t>(chance.Between(3, 10)));
  for (Fault& fault : faults) {
    fault.at = Millis(chance.Between(500, 60'000));
    fault.place = chance.Pick(places);
    fault.time = Millis(chance.Between(200, 12'000));
    if (nodes > 0) fault.node = static_cast<int>(chance.Pick(static_cast<uint64_t>(nodes)));
    fault.kind = KindOf(chance.Pick(kinds), fault);
  }
  return faults;
}

}  // namespace fluxqueue::simulation
