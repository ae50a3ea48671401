// What goes wrong in a run: a list of faults, drawn before it begins. So faults can be taken out,
// and all else stays as it was.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "tests/simulation/chance.h"

namespace fluxqueue::simulation {

struct Fault {
  enum class Kind {
    kEnd,             // the process ends where it stands, and comes again
    kFreeze,          // it stands still, as after SIGSTOP
    kFreezeInCommit,  // the same, in the midst of its next transaction
    kBrokersAway,
    kDatabaseAway,
    kProducersFail,  // records are refused, come late, are in the log and not acknowledged
    kCommitsFail,    // they fail, or it is not said what became of them
    kFenced,         // all members of groups are refused once
    kNodeAway,       // a node goes, and comes again as another
    kNodeSilent,     // its kubelet does nothing, and it is not ready
    kClusterAway,    // the API server is away
    kCallsFail,      // to it: they are refused, done and not answered, or done later
    kWatchesCut,
    kWatchesExpire,  // none can go on from where it was
    kWatchesLag,     // each by itself
    kCommitsLost,    // the database goes back, as after a failover to a standby
    kClusterBack,    // the cluster's store goes back, as when a backup is restored
  };

  Kind kind = Kind::kEnd;
  Millis at{0};
  Millis time{0};    // how long
  size_t place = 0;  // of the process
  int node = 0;
  size_t commits = 0;  // that are lost; of the cluster's store: changes
};

std::string_view Name(Fault::Kind kind);
// `places`: the names of the processes.
std::string Describe(const Fault& fault, const std::vector<std::string>& places);

// 3 to 10 faults in the first minute. `nodes`: 0 where there are none. `cluster`: its API is
// simulated, too.
std::vector<Fault> DrawFaults(Chance& chance, size_t places, int nodes, bool cluster = false);

}  // namespace fluxqueue::simulation
