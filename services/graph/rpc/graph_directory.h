// The private graphs that there are: by their keys, and by the connections on which clients that
// know of no keys made them.
//
// A graph goes when it was not used for `idle` (a call under way uses it), and when the connection
// that made it makes another before anybody has named its key. A graph that is asked for by a
// connection is that of the last Init on it: a client of the ancestors that reconnects has to Init
// again, and clients behind one proxy must name keys.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/base/clock.h"
#include "services/graph/rpc/private_graph_calls.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

struct PrivateGraphLimits {
  int graphs = 64;
  // Of all graphs together; each takes some hundred bytes.
  int64_t vertices = 4'000'000;
  // The same of those of one client.
  int client_graphs = 16;
  int64_t client_vertices = 2'000'000;
  // Of a graph as text.
  int64_t graph_bytes = int64_t{64} << 20;
  Millis idle{std::chrono::minutes(10)};
};

// Who makes a graph.
struct GraphOwner {
  std::string client = {};  // whose it counts as
  std::string peer = {};    // the connection that is to be known by it; empty: none
};

class GraphDirectory {
 public:
  // `clock` outlives the directory.
  GraphDirectory(const PrivateGraphLimits& limits, const Clock& clock);
  ~GraphDirectory();  // DropAll

  const PrivateGraphLimits& limits() const { return limits_; }

  // Whether there may be one more of that many bytes: to be asked before it is read.
  // ResourceExhausted, with the reason GRAPH_LIMIT or GRAPH_SIZE; likewise of Add, which may come
  // late.
  absl::Status Check(size_t bytes, const GraphOwner& owner);
  absl::StatusOr<std::string> Add(std::shared_ptr<PrivateGraphCalls> graph,
                                  const GraphOwner& owner);

  // Null when there is none (any more).
  std::shared_ptr<PrivateGraphCalls> Find(std::string_view key);
  std::shared_ptr<PrivateGraphCalls> FindOfPeer(std::string_view peer);
  // False when there is none.
  bool Drop(std::string_view key);
  // Those that are idle.
  void Sweep();
  // All watches end, with Unavailable.
  void DropAll();

  size_t graphs() const;
  int64_t vertices() const;

 private:
  struct Entry {
    std::shared_ptr<PrivateGraphCalls> graph;
    std::chrono::steady_clock::time_point used;
    GraphOwner owner;
    bool named = false;  // somebody asked for it by its key
  };
  // Of all graphs, or of one client's.
  struct Count {
    int graphs = 0;
    int64_t vertices = 0;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Entries = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;
  using Graphs = std::vector<std::shared_ptr<PrivateGraphCalls>>;

  // With mutex_ held.
  // The graph that a new one of this connection takes the place of; end() when there is none.
  Entries::iterator ReplacedBy(const std::string& peer);
  absl::Status CheckRoom(const GraphOwner& owner, int64_t more_vertices);
  Graphs TakeIdle();
  std::shared_ptr<PrivateGraphCalls> Take(Entries::iterator entry);
  std::string NewKey();

  const PrivateGraphLimits limits_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::random_device random_;  // guarded by mutex_, as what follows
  Entries entries_;            // by key
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> keys_;  // by peer
  Count count_;
  std::unordered_map<std::string, Count> clients_;  // of those that have some
};

}  // namespace fluxqueue::graph_service
