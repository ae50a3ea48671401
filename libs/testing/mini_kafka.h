// A real Kafka broker for a test: started on a free port in a folder of its own, stopped and
// removed with the object. If the test dies, the broker goes with it.
#pragma once

#include <memory>
#include <string>

#include "libs/testing/mini_server.h"

namespace fluxqueue::testing {

// The disk of the broker in `folder`, which was killed, had not got the last batch of each of the
// topic's partitions yet, though it was acknowledged. REQUIRES: it does not run.
void LoseTails(const std::string& folder, const std::string& topic);

// Aborts the test program when the broker does not start (the message shows the tool's output).
class MiniKafka {
 public:
  // `options`: more for tools/kafka/start.
  explicit MiniKafka(const std::string& options = "") : server_("kafka", "bootstrap", options) {}

  // "127.0.0.1:29092"; stays the same over Restart.
  const std::string& bootstrap() const { return server_.address(); }
  // Data are kept in between.
  void Stop() { server_.Stop(); }
  void Start() { server_.Start(); }
  // REQUIRES: stopped.
  void LoseTails(const std::string& topic) { testing::LoseTails(server_.folder(), topic); }

 private:
  MiniServer server_;
};

}  // namespace fluxqueue::testing
