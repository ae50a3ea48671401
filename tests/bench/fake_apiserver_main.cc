// fluxqueue-fake-apiserver --port P --nodes N: what the five services see of a cluster, for
// tools/bench pipeline (fake_cluster.h). Runs until it is told to end.
#include <csignal>
#include <cstdint>

#include <CLI/CLI.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "tests/bench/fake_server.h"

int main(int argc, char** argv) {
  CLI::App app("A Kubernetes API server as far as Fluxqueue's services need it, for benchmarks.");
  uint16_t port = 0;
  int nodes = 1000;
  app.add_option("--port", port, "of 127.0.0.1")->required();
  app.add_option("--nodes", nodes, "of 8 cores and 110 pods")->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);

  boost::asio::io_context io(1);
  fluxqueue::bench::FakeServer server(io, nodes);
  if (const absl::Status status = server.Listen(port); !status.ok()) {
    fmt::print(stderr, "fluxqueue-fake-apiserver: {}\n", fluxqueue::Message(status));
    return 1;
  }
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&io](const boost::system::error_code&, int) { io.stop(); });
  io.run();
  return 0;
}
