// The private graphs that there are: by their keys, and by who made them on which connection, for
// clients that know of no keys.
//
// A graph goes when it was not used for `idle` (a call under way uses it), and when its owner makes
// another on the same connection before anybody has named its key. Without a key a graph is found
// by its owner alone, on the connection of his last Init: whoever else comes by the same address (a
// proxy, a port that is used again) does not reach it. A client of the ancestors that reconnects
// has to Init again, and those of one user behind one proxy must name keys.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/access/rights.h"
#include "libs/base/clock.h"
#include "services/graph/rpc/private_graph_calls.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

struct PrivateGraphLimits {
  int graphs = 64;
  // Of all graphs together. Each takes 0.7 kB; with all that jobs may hold of it, and a copy of
  // both for WhatIf, 2 kB: so that they fit beside the rest into 4 GiB.
  int64_t vertices = 1'000'000;
  // The same of those of one client.
  int client_graphs = 16;
  int64_t client_vertices = 500'000;
  // Of a graph as text.
  int64_t graph_bytes = int64_t{64} << 20;
  Millis idle{std::chrono::minutes(10)};
};

// Who makes a graph, or asks for the one that he made.
struct GraphOwner {
  std::string user = {};  // no control characters
  std::string peer = {};  // the connection that he knows it by; empty: he has its key

  // The client that it counts as.
  std::string Tenant() const { return std::string(access::TenantOf(user)); }
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
  std::shared_ptr<PrivateGraphCalls> FindOf(const GraphOwner& owner);
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
  // Of all graphs, and of each client's that has some: also of those that were dropped, as long as
  // a call uses them.
  struct Vertices {
    void Add(const std::string& client, int64_t vertices);

    std::mutex mutex;
    int64_t all = 0;
    std::unordered_map<std::string, int64_t> clients;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Entries = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;
  using Graphs = std::vector<std::shared_ptr<PrivateGraphCalls>>;

  // With mutex_ held.
  // The graph that a new one takes the place of; end() when there is none.
  Entries::iterator ReplacedBy(const GraphOwner& owner);
  absl::Status CheckRoom(const GraphOwner& owner, int64_t more_vertices);
  absl::Status CheckVertices(const std::string& client, int64_t more);
  Graphs TakeIdle();
  std::shared_ptr<PrivateGraphCalls> Take(Entries::iterator entry);
  std::string NewKey();

  const PrivateGraphLimits limits_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::random_device random_;  // guarded by mutex_, as what follows
  Entries entries_;            // by key
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> keys_;  // by ConnectionOf
  std::unordered_map<std::string, int> clients_;  // graphs of those that have some
  const std::shared_ptr<Vertices> vertices_ = std::make_shared<Vertices>();
};

}  // namespace fluxqueue::graph_service
