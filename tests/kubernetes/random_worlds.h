// Random nodes and pods, as the API server takes them. The same seed gives the same on every
// machine.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fluxqueue::kubernetes_test {

using nlohmann::json;

class RandomWorlds {
 public:
  explicit RandomWorlds(uint64_t seed) : random_(seed) {}

  // As kube-filters reads it. Bound pods run on the nodes; where the others may run is the
  // question.
  json Next(int nodes, int pods);

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Chance(uint64_t percent) { return Below(100) < percent; }
  const char* Pick(const std::vector<const char*>& from) { return from[Below(from.size())]; }

  json LimitRange();
  json Node(int number);
  json Labels(const std::string& name);
  json Taints();
  json Allocatable();
  json BoundPod(int number, const std::string& node);
  json Pod(int number, int nodes);
  json Container(const std::string& name, uint64_t most);
  void AskForDevices(json* container);
  void AddInitContainers(json* spec);
  void AddPodResources(json* spec);
  json PodLabels();
  json PodSelector();
  void AddPorts(json* spec);
  void AddRule(const char* kind, bool elsewhere, json* spec);
  void AddSpread(json* spec);
  void AddWhatOthersSay(json* spec);
  json Affinity(int nodes);
  json NodeTerm(int nodes);
  json Expression();
  json FieldExpression(int nodes);
  json Toleration();

  std::mt19937_64 random_;
};

}  // namespace fluxqueue::kubernetes_test
