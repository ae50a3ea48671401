// HTTP requests and responses as the server and the client of this library know them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fluxqueue::http {

// In the order they were received or are to be sent. Names compare without case.
using Headers = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of that name; empty if there is none.
std::string_view FindHeader(const Headers& headers, std::string_view name);

struct Request {
  std::string method{};  // "GET"
  std::string path{};    // "/mutate", without the query
  std::string query{};   // "timeout=10s", without the question mark
  Headers headers{};
  std::string body{};
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
  Headers headers{};
};

}  // namespace fluxqueue::http
