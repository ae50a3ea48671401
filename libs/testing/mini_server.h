// What MiniKafka and MiniPostgres share: a server started by tools/<name>/start in a temporary
// folder.
#pragma once

#include <string>

namespace fluxqueue::testing {

class MiniServer {
 public:
  // `address_file`: what the start tool writes into the folder when the server is ready. `options`:
  // for each start, as words of the shell.
  MiniServer(std::string name, std::string address_file, std::string options = "");
  ~MiniServer();
  MiniServer(const MiniServer&) = delete;
  MiniServer& operator=(const MiniServer&) = delete;

  const std::string& address() const { return address_; }
  const std::string& folder() const { return folder_; }
  void Start();
  void Stop();
  // tools/<name>/<tool> on the folder.
  void RunTool(const std::string& tool);

 private:
  std::string name_;
  std::string address_file_;
  std::string options_;
  std::string folder_;
  std::string address_;
};

}  // namespace fluxqueue::testing
