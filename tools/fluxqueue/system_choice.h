// Which system a command is about: one that a file names, or the one of a cluster. Pure.
//
// In this order, the first that holds:
//   1. --config FILE
//   2. --kubeconfig FILE or --context NAME: that cluster
//   3. $FLUXQUEUE_CONFIG
//   4. $KUBECONFIG: that cluster
//   5. the file that tools/up writes
//   6. the cluster that kubectl reaches by itself
// A cluster of 2 or 4 that is the very one of the file's system (3, else 5) is no other system: the
// file holds then, as it leads to Postgres and Kafka without a way through the API server. So
// `export KUBECONFIG=…` for the kubectl of a system of tools/up goes on meaning that system.
#pragma once

#include <string>
#include <vector>

namespace fluxqueue::cli {

// What a person has said, and what there is.
struct Facts {
  std::string option{};           // --config; empty: not given
  std::string variable{};         // $FLUXQUEUE_CONFIG; empty: not set
  std::string found{};            // the file that tools/up writes; empty: there is none
  bool cluster_option = false;    // --kubeconfig or --context is given
  bool cluster_variable = false;  // $KUBECONFIG is set
  // The cluster that one of these names is that of the system of `variable`, else of `found`.
  bool same_cluster = false;
};

enum class Where {
  kNamedFile,  // somebody has named the file
  kFoundFile,  // nobody has named anything else
  kCluster,    // there, and in the namespace of --system-namespace
};

struct Choice {
  Where where;
  std::string file;  // empty: kCluster
};

Choice Choose(const Facts& facts);

// The files of $KUBECONFIG, which has them as a PATH has folders.
std::vector<std::string> KubeconfigFiles(const std::string& variable);

// The API server's address in the context `context`, or the current one where that is empty, of
// kubeconfigs as kubectl merges them: of equal names the first counts. Empty: there is none. A text
// that is no YAML counts as an empty one: kubectl says what is wrong with it.
std::string ServerOf(const std::vector<std::string>& kubeconfigs, const std::string& context);

}  // namespace fluxqueue::cli
