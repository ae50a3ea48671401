// What was said and not heard is said again: the log may have lost it.
#include <bit>
#include <functional>
#include <map>
#include <utility>

#include "libs/kubernetes/node.h"
#include "services/cleanup/domain/observer.h"

namespace fluxqueue::cleanup {

HeardNode HeardNode::Of(const std::string& pool, const events::v1::Node& node) {
  return {.pool = pool,
          .name = node.name(),
          .uid = node.uid(),
          .inventory = std::hash<std::string>()(kubernetes::InventoryOf(node))};
}

bool Observer::SayEndAgain(const std::string& job_id) {
  const auto it = jobs_.find(job_id);
  if (it == jobs_.end() || !it->second.said.ended) return false;
  it->second.said.ended = false;
  dirty_jobs_.insert(job_id);
  return true;
}

bool Observer::SayStartAgain(const std::string& job_id, uint32_t attempt) {
  const auto it = jobs_.find(job_id);
  if (it == jobs_.end()) return false;
  JobEntry& job = it->second;
  if (job.attempt != attempt || job.started_ms == 0 || job.said.started_attempt != attempt) {
    return false;
  }
  job.said.started_attempt = 0;
  dirty_jobs_.insert(job_id);
  return true;
}

bool Observer::BelongsTo(const std::string& pool, const NodeEntry& node) {
  if (node.said.has_value()) return node.said_pool == pool;
  return node.present && node.pool == pool;
}

size_t Observer::HearNodes(const std::vector<HeardNode>& heard) {
  std::map<std::pair<std::string_view, std::string_view>, const HeardNode*> rows;
  for (const HeardNode& node : heard) rows[{node.pool, node.name}] = &node;
  size_t again = 0;
  const auto before = std::exchange(unheard_, {});
  // True: it was so at the last look, too, and something is to be done.
  const auto stays = [&](const std::string& pool, const std::string& name, size_t said) {
    const std::pair key(pool, name);
    Unheard& now = unheard_[key] = {.said = said};
    const auto then = before.find(key);
    if (then == before.end() || then->second.said != said) return false;
    const uint32_t looks = then->second.looks + 1;
    const bool is_due = std::has_single_bit(looks);
    // The others stay due.
    if (is_due && again == kMostSaidAgain) {
      now.looks = then->second.looks;
      return false;
    }
    now.looks = looks;
    if (!is_due) return false;
    ++again;
    dirty_nodes_.insert(name);
    return true;
  };
  for (auto& [name, node] : nodes_) {
    if (!node.said.has_value()) continue;
    const size_t said = std::hash<std::string>()(node.said->inventory);
    const auto row = rows.find({node.said_pool, name});
    const bool is_heard =
        row != rows.end() && row->second->uid == node.said->uid && row->second->inventory == said;
    if (is_heard || !stays(node.said_pool, name, said)) continue;
    pools_[node.said_pool] = false;
    node.said.reset();
  }
  for (const HeardNode& row : heard) {
    const auto known = nodes_.find(row.name);
    if (known != nodes_.end() && BelongsTo(row.pool, known->second)) continue;
    if (!stays(row.pool, row.name, std::hash<std::string>()(row.uid))) continue;
    NodeEntry& gone = nodes_[row.name];
    gone.said = NodeSaid{.uid = row.uid, .inventory = ""};
    gone.said_pool = row.pool;
  }
  return again;
}

}  // namespace fluxqueue::cleanup
