// For tests: a folder of authorities, and of certificates that they have signed; NAME.crt,
// NAME.key.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "libs/base/check.h"

namespace fluxqueue::rpc {

class TlsFolder {
 public:
  TlsFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rpc-tls-XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr, "{}", pattern);
    folder_ = pattern;
  }
  ~TlsFolder() { std::filesystem::remove_all(folder_); }
  TlsFolder(const TlsFolder&) = delete;
  TlsFolder& operator=(const TlsFolder&) = delete;

  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }

  void Authority(const std::string& name) const {
    Shell(
        fmt::format("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
                    "-subj /CN={0} -keyout {0}.key -out {0}.crt",
                    name));
  }
  // In place of one of that name, if there is one. `extension`: "subjectAltName=DNS:a".
  void Sign(const std::string& authority,
            const std::string& name,
            const std::string& extension) const {
    Shell(
        fmt::format("openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
                    "-subj /CN={1} -keyout {1}.key.new -out {1}.csr && echo {2} >{1}.ext && "
                    "openssl x509 -req -in {1}.csr -CA {0}.crt -CAkey {0}.key -CAcreateserial "
                    "-days 2 -extfile {1}.ext -out {1}.crt.new && mv {1}.key.new {1}.key && "
                    "mv {1}.crt.new {1}.crt",
                    authority,
                    name,
                    extension));
  }

 private:
  void Shell(const std::string& command) const {
    const std::string line = fmt::format("cd {} && {} 2>log", folder_.string(), command);
    // NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): openssl, with texts of ours.
    CHECK(std::system(line.c_str()) == 0, "{}", Read("log"));
  }

  std::filesystem::path folder_;
};

}  // namespace fluxqueue::rpc
