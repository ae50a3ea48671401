#include "libs/matcher_core/node_book.h"

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::matcher_core {

void NodeBook::Put(const std::string& name, KnownNode node) {
  if (const KnownNode* known = nodes_.Find(name); known != nullptr) Uncount(name, *known);
  Count(name, node);
  nodes_.Put(name, std::move(node));
}

void NodeBook::ForgetGone(size_t kept) {
  while (gone_.size() > kept) {
    const std::string oldest = gone_.begin()->second;
    Uncount(oldest, *nodes_.Find(oldest));
    nodes_.Erase(oldest);
  }
}

void NodeBook::Rollback() {
  nodes_.Rollback([this](const std::string& name, const KnownNode& node) { Uncount(name, node); },
                  [this](const std::string& name, const KnownNode& node) { Count(name, node); });
}

void NodeBook::Restore(const std::string& name, KnownNode node) {
  Count(name, node);
  nodes_.Restore(name, std::move(node));
}

void NodeBook::Clear() {
  nodes_.Clear();
  gone_.clear();
  capacity_.clear();
}

void NodeBook::Count(const std::string& name, const KnownNode& node) {
  CountCapacity(node, 1);
  if (!node.present) gone_.emplace(node.ordinal, name);
}

void NodeBook::Uncount(const std::string& name, const KnownNode& node) {
  CountCapacity(node, -1);
  if (!node.present) gone_.erase({node.ordinal, name});
}

void NodeBook::CountCapacity(const KnownNode& known, int sign) {
  events::v1::Node node;
  if (!known.present || !node.ParseFromString(known.bytes)) return;
  if (!node.ready() || node.unschedulable()) return;
  for (const events::v1::Amount& amount : node.allocatable()) {
    const auto it = capacity_.try_emplace(amount.resource(), 0).first;
    it->second += sign * amount.amount();
    if (it->second == 0) capacity_.erase(it);
  }
}

}  // namespace fluxqueue::matcher_core
