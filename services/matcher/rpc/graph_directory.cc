#include "services/matcher/rpc/graph_directory.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/config/units.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::matcher {
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
  for (const auto& graph : graphs) graph->Drop(why);
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

GraphDirectory::Entries::iterator GraphDirectory::ReplacedBy(const std::string& peer) {
  const auto key = keys_.find(peer);
  if (key == keys_.end()) return entries_.end();
  const auto entry = entries_.find(key->second);
  return entry->second.named ? entries_.end() : entry;
}

absl::Status GraphDirectory::CheckRoom(const std::string& peer, int64_t more_vertices) {
  const auto replaced = ReplacedBy(peer);
  const bool replaces = replaced != entries_.end();
  const size_t graphs = entries_.size() - (replaces ? 1 : 0);
  if (static_cast<int>(graphs) >= limits_.graphs) {
    return TooMany(
        "GRAPH_LIMIT",
        fmt::format("there are too many private graphs (each goes {} after its last use)",
                    config::FormatDuration(limits_.idle)),
        static_cast<int64_t>(graphs),
        limits_.graphs);
  }
  const int64_t vertices =
      vertices_ - (replaces ? replaced->second.graph->vertices() : 0) + more_vertices;
  if (vertices <= limits_.vertices) return absl::OkStatus();
  return TooMany("GRAPH_SIZE",
                 "all private graphs together would have too many vertices",
                 vertices,
                 limits_.vertices);
}

absl::Status GraphDirectory::Check(size_t bytes, const std::string& peer) {
  if (static_cast<int64_t>(bytes) > limits_.graph_bytes) {
    return TooMany("GRAPH_SIZE",
                   "the graph's text is too large, in bytes",
                   static_cast<int64_t>(bytes),
                   limits_.graph_bytes);
  }
  Sweep();
  const std::lock_guard lock(mutex_);
  return CheckRoom(peer, 0);
}

absl::StatusOr<std::string> GraphDirectory::Add(std::shared_ptr<PrivateGraphCalls> graph,
                                                const std::string& peer) {
  Graphs replaced;
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(CheckRoom(peer, graph->vertices()));
    const auto entry = ReplacedBy(peer);
    if (entry != entries_.end()) replaced.push_back(Take(entry));
    key = NewKey();
    vertices_ += graph->vertices();
    if (!peer.empty()) keys_[peer] = key;
    entries_.emplace(key, Entry{std::move(graph), clock_.Monotonic(), peer});
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

std::shared_ptr<PrivateGraphCalls> GraphDirectory::FindOfPeer(std::string_view peer) {
  const std::lock_guard lock(mutex_);
  const auto key = keys_.find(peer);
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
  const auto key = keys_.find(entry->second.peer);
  if (key != keys_.end() && key->second == entry->first) keys_.erase(key);
  std::shared_ptr<PrivateGraphCalls> graph = std::move(entry->second.graph);
  vertices_ -= graph->vertices();
  entries_.erase(entry);
  return graph;
}

void GraphDirectory::DropAll() {
  Graphs all;
  {
    const std::lock_guard lock(mutex_);
    while (!entries_.empty()) all.push_back(Take(entries_.begin()));
  }
  DropGraphs(all, Unavailable("the matcher is stopping"));
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
  const std::lock_guard lock(mutex_);
  return vertices_;
}

}  // namespace fluxqueue::matcher
