#include "services/graph/rpc/graph_directory.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/config/units.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::graph_service {
namespace {

constexpr int kKeyWords = 4;

absl::Status TooMany(std::string_view reason, std::string_view what, int64_t is, int64_t limit) {
  return rpc::WithReason(
      MakeStatus(
          absl::StatusCode::kResourceExhausted, "{}: {}, of {} that are allowed", what, is, limit),
      reason,
      {{"limit", fmt::format("{}", limit)}});
}

void DropGraphs(const std::vector<std::shared_ptr<PrivateGraphCalls>>& graphs,
                const absl::Status& why) {
  for (const auto& graph : graphs) {
    // One that nobody else uses has no watches, and goes at once.
    if (graph.use_count() > 1) graph->Drop(why);
  }
}

// Empty: the owner has the key.
std::string ConnectionOf(const GraphOwner& owner) {
  return owner.peer.empty() ? "" : fmt::format("{}\n{}", owner.user, owner.peer);
}

absl::Status Gone() {
  return rpc::WithReason(MakeStatus(absl::StatusCode::kNotFound, "the graph was dropped"),
                         "GRAPH_UNKNOWN");
}

}  // namespace

GraphDirectory::GraphDirectory(const PrivateGraphLimits& limits, const Clock& clock)
    : limits_(limits), clock_(clock) {}

GraphDirectory::~GraphDirectory() {
  DropAll();
}

GraphDirectory::Entries::iterator GraphDirectory::ReplacedBy(const GraphOwner& owner) {
  const auto key = keys_.find(ConnectionOf(owner));
  if (key == keys_.end()) return entries_.end();
  const auto entry = entries_.find(key->second);
  return entry->second.named ? entries_.end() : entry;
}

absl::Status GraphDirectory::CheckRoom(const GraphOwner& owner, int64_t more_vertices) {
  const auto replaced = ReplacedBy(owner);
  const int less = replaced == entries_.end() ? 0 : 1;
  const int graphs = static_cast<int>(entries_.size()) - less;
  if (graphs >= limits_.graphs) {
    return TooMany(
        "GRAPH_LIMIT",
        fmt::format("there are too many private graphs (each goes {} after its last use)",
                    config::FormatDuration(limits_.idle)),
        graphs,
        limits_.graphs);
  }
  const std::string tenant = owner.Tenant();
  const auto client = clients_.find(tenant);
  const int own = (client == clients_.end() ? 0 : client->second) - less;
  if (own >= limits_.client_graphs) {
    return TooMany("GRAPH_LIMIT",
                   fmt::format("{} has too many private graphs: drop some (each goes {} after its "
                               "last use)",
                               tenant,
                               config::FormatDuration(limits_.idle)),
                   own,
                   limits_.client_graphs);
  }
  // One that a call uses stays until that has ended.
  const bool goes = less != 0 && replaced->second.graph.use_count() == 1;
  return CheckVertices(tenant, more_vertices - (goes ? replaced->second.graph->vertices() : 0));
}

absl::Status GraphDirectory::CheckVertices(const std::string& client, int64_t more) {
  const std::lock_guard lock(vertices_->mutex);
  if (vertices_->all + more > limits_.vertices) {
    return TooMany("GRAPH_SIZE",
                   "all private graphs together would have too many vertices: try again later",
                   vertices_->all + more,
                   limits_.vertices);
  }
  const auto found = vertices_->clients.find(client);
  const int64_t own = more + (found == vertices_->clients.end() ? 0 : found->second);
  if (own <= limits_.client_vertices) return absl::OkStatus();
  return TooMany(
      "GRAPH_SIZE",
      fmt::format("the private graphs of {} would have too many vertices: drop some", client),
      own,
      limits_.client_vertices);
}

void GraphDirectory::Vertices::Add(const std::string& client, int64_t vertices) {
  const std::lock_guard lock(mutex);
  all += vertices;
  int64_t& own = clients[client];
  own += vertices;
  if (own == 0) clients.erase(client);
}

absl::Status GraphDirectory::Check(size_t bytes, const GraphOwner& owner) {
  if (static_cast<int64_t>(bytes) > limits_.graph_bytes) {
    return TooMany("GRAPH_SIZE",
                   "the graph's text is too large, in bytes",
                   static_cast<int64_t>(bytes),
                   limits_.graph_bytes);
  }
  Sweep();
  const std::lock_guard lock(mutex_);
  return CheckRoom(owner, 0);
}

absl::StatusOr<std::string> GraphDirectory::Add(std::shared_ptr<PrivateGraphCalls> graph,
                                                const GraphOwner& owner) {
  Graphs replaced;
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(CheckRoom(owner, graph->vertices()));
    const auto entry = ReplacedBy(owner);
    if (entry != entries_.end()) replaced.push_back(Take(entry));
    key = NewKey();
    const std::string tenant = owner.Tenant();
    ++clients_[tenant];
    const auto go = [counts = vertices_, client = tenant, own = graph->vertices()](void*) {
      counts->Add(client, -own);
    };
    vertices_->Add(tenant, graph->vertices());
    graph->Keep(std::shared_ptr<void>(nullptr, go));
    if (!owner.peer.empty()) keys_[ConnectionOf(owner)] = key;
    entries_.emplace(key, Entry{std::move(graph), clock_.Monotonic(), owner});
  }
  DropGraphs(replaced, Gone());
  return key;
}

std::shared_ptr<PrivateGraphCalls> GraphDirectory::Find(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return nullptr;
  entry->second.used = clock_.Monotonic();
  entry->second.named = true;
  return entry->second.graph;
}

std::shared_ptr<PrivateGraphCalls> GraphDirectory::FindOf(const GraphOwner& owner) {
  const std::lock_guard lock(mutex_);
  const auto key = keys_.find(ConnectionOf(owner));
  if (key == keys_.end()) return nullptr;
  Entry& entry = entries_.at(key->second);
  entry.used = clock_.Monotonic();
  return entry.graph;
}

bool GraphDirectory::Drop(std::string_view key) {
  Graphs dropped;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(key);
    if (entry == entries_.end()) return false;
    dropped.push_back(Take(entry));
  }
  DropGraphs(dropped, Gone());
  return true;
}

void GraphDirectory::Sweep() {
  Graphs idle;
  {
    const std::lock_guard lock(mutex_);
    idle = TakeIdle();
  }
  DropGraphs(idle, Gone());
}

GraphDirectory::Graphs GraphDirectory::TakeIdle() {
  Graphs idle;
  const auto now = clock_.Monotonic();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    // Calls and streams under way have a pointer of their own.
    if (entry->second.graph.use_count() > 1) {
      entry->second.used = now;
    } else if (now - entry->second.used >= limits_.idle) {
      idle.push_back(Take(entry));
    }
    entry = next;
  }
  return idle;
}

std::shared_ptr<PrivateGraphCalls> GraphDirectory::Take(Entries::iterator entry) {
  const GraphOwner& owner = entry->second.owner;
  const auto key = keys_.find(ConnectionOf(owner));
  if (key != keys_.end() && key->second == entry->first) keys_.erase(key);
  std::shared_ptr<PrivateGraphCalls> graph = std::move(entry->second.graph);
  const auto client = clients_.find(owner.Tenant());
  if (--client->second == 0) clients_.erase(client);
  entries_.erase(entry);
  return graph;
}

void GraphDirectory::DropAll() {
  Graphs all;
  {
    const std::lock_guard lock(mutex_);
    while (!entries_.empty()) all.push_back(Take(entries_.begin()));
  }
  DropGraphs(all, Unavailable("the graph service is stopping"));
}

std::string GraphDirectory::NewKey() {
  std::string key;
  for (int i = 0; i < kKeyWords; ++i) key += fmt::format("{:08x}", random_());
  return key;
}

size_t GraphDirectory::graphs() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

int64_t GraphDirectory::vertices() const {
  const std::lock_guard lock(vertices_->mutex);
  return vertices_->all;
}

}  // namespace fluxqueue::graph_service
