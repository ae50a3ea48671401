// Server and client against each other on loopback, and the server against raw bytes.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/http/certificate.h"
#include "libs/http/client.h"
#include "libs/http/server.h"

namespace fluxqueue::http {
namespace {

namespace asio = boost::asio;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename Handling>  // a Handler, or an AsyncHandler
std::unique_ptr<Server> StartServer(Handling handler, ServerOptions options = {}) {
  auto server = Server::Start(std::move(options), std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

std::string Url(const Server& server, const char* scheme = "http") {
  return fmt::format("{}://127.0.0.1:{}", scheme, server.port());
}

Response Echo(const Request& request) {
  return {
      .body = fmt::format("{} {} {} {}", request.method, request.path, request.query, request.body),
      .headers = {{"X-Agent", std::string(FindHeader(request.headers, "user-agent"))}}};
}

// Sends the bytes and reads until the server closes.
std::string Raw(const Server& server, const std::string& bytes) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  boost::system::error_code error;
  socket.connect({asio::ip::make_address("127.0.0.1"), static_cast<uint16_t>(server.port())},
                 error);
  asio::write(socket, asio::buffer(bytes), error);
  std::string answer;
  asio::read(socket, asio::dynamic_buffer(answer), error);
  return answer;
}

class TlsFiles {
 public:
  TlsFiles() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fluxqueue-tls-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    Make();
  }
  ~TlsFiles() { std::filesystem::remove_all(folder_); }

  // A new key and a certificate that it signs itself.
  void Make() const {
    const std::string command = fmt::format(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout {0}/key.new -out {0}/crt.new -days 2 "
        "-subj /CN=test -addext subjectAltName=IP:127.0.0.1 2>/dev/null && mv {0}/key.new {0}/key "
        "&& "
        "mv {0}/crt.new {0}/crt",
        folder_);
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  ServerTls tls() const { return {folder_ + "/crt", folder_ + "/key"}; }
  std::string Certificate() const {
    std::ifstream file(folder_ + "/crt");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string folder_;
};

TEST(Http, CarriesRequestsOnKeptConnections) {
  const auto server = StartServer(Echo);
  Client client({.base_url = Url(*server)});
  const auto got = client.Do({.target = "/a/b?x=1"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->body, "GET /a/b x=1 ");
  EXPECT_EQ(FindHeader(got->headers, "x-agent"), "fluxqueue");
  EXPECT_EQ(client.Do({.method = "POST", .target = "/p", .body = "hello"})->body, "POST /p  hello");
  EXPECT_EQ(client.Do({.method = "POST", .target = "/p"})->body, "POST /p  ");
  EXPECT_EQ(client.Do({.method = "PATCH", .target = "/p", .body = "x"})->body, "PATCH /p  x");
  EXPECT_EQ(client.Do({.method = "DELETE", .target = "/p"})->body, "DELETE /p  ");
}

TEST(Http, ServesManyThreadsAtOnce) {
  const auto server = StartServer(Echo, {.threads = 4});
  Client client({.base_url = Url(*server), .bearer_token = [] { return "t"; }});
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 16; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const std::string body = fmt::format("{}-{}", t, i);
          const auto got = client.Do({.method = "POST", .target = "/", .body = body});
          if (got.ok() && got->body == "POST /  " + body) ++right;
        }
      });
    }
  }
  EXPECT_EQ(right, 16 * 50);
}

TEST(Http, RouterSaysWhatThereIs) {
  Router router;
  router.Add("GET", "/livez", [](const Request&) { return Response{.body = "ok"}; });
  router.Add("POST", "/mutate", [](const Request&) -> Response { throw std::runtime_error("no"); });
  const auto server = StartServer(router.AsHandler());
  Client client({.base_url = Url(*server)});
  EXPECT_EQ(client.Do({.target = "/livez"})->body, "ok");
  const auto missing = client.Do({.target = "/live"});
  EXPECT_EQ(missing->status, 404);
  EXPECT_EQ(missing->body, "/live: not here; there are /livez, /mutate\n");
  const auto wrong = client.Do({.target = "/mutate"});
  EXPECT_EQ(wrong->status, 405);
  EXPECT_EQ(FindHeader(wrong->headers, "Allow"), "POST");
  EXPECT_EQ(client.Do({.method = "POST", .target = "/mutate"})->status, 500);
}

TEST(Server, AnswersWhatIsTooLargeOrNotHttp) {
  const auto server = StartServer(Echo, {.max_body_bytes = 1000});
  Client client({.base_url = Url(*server)});
  EXPECT_EQ(client.Do({.method = "POST", .body = std::string(1000, 'x')})->status, 200);
  const auto large = client.Do({.method = "POST", .body = std::string(3 << 20, 'x')});
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->status, 413);
  EXPECT_THAT(large->body, HasSubstr("larger than the 1000 bytes"));
  EXPECT_THAT(Raw(*server,
                  "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
                      std::string(2000, 'x') + "\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Raw(*server, "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(*server, "GET / HTTP/1.1\r\nA: " + std::string(70'000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_EQ(client.Do({.target = "/still"})->status, 200);
}

TEST(Server, SaysWhyItCannotListen) {
  const auto first = StartServer(Echo);
  const auto second = Server::Start({.port = first->port()}, Echo);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_EQ(
      Message(second.status()),
      fmt::format("listen on 127.0.0.1:{}: the port is in use by another process; stop that or "
                  "configure another port",
                  first->port()));
  EXPECT_THAT(Message(Server::Start({.address = "here"}, Echo).status()),
              HasSubstr("allowed are an IP address and a port"));
  const auto no_tls = Server::Start({.tls = ServerTls{"/no/crt", "/no/key"}}, Echo);
  EXPECT_THAT(Message(no_tls.status()), HasSubstr("TLS certificate /no/crt"));
}

TEST(Certificate, SaysWhenItIsOver) {
  const TlsFiles files;  // for two days
  const auto end = CertificateEnd(files.tls().certificate_file);
  ASSERT_TRUE(end.ok()) << end.status();
  const auto left = *end - std::chrono::system_clock::now();
  EXPECT_GT(left, std::chrono::hours(47));
  EXPECT_LE(left, std::chrono::hours(48));
  EXPECT_EQ(Message(CertificateEnd("/no/crt").status()), "/no/crt: no PEM certificate");
}

TEST(Server, StopAnswersWhatIsUnderWay) {
  std::atomic<bool> entered = false;
  std::atomic<bool> leave = false;
  auto server = StartServer([&](const Request&) {
    entered = true;
    entered.notify_all();
    leave.wait(false);
    return Response{.body = "done"};
  });
  Client client({.base_url = Url(*server)});
  absl::StatusOr<Response> got;
  std::jthread caller([&] { got = client.Do({}); });
  entered.wait(false);
  std::jthread stopper([&] { server->Stop(); });
  leave = true;
  leave.notify_all();
  stopper.join();
  caller.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->body, "done");
  EXPECT_TRUE(absl::IsUnavailable(client.Do({}).status()));
  server->Stop();
}

TEST(Tls, IsVerifiedAndReadAgain) {
  const TlsFiles files;
  const auto server = StartServer(Echo, {.tls = files.tls()});
  Client trusting({.base_url = Url(*server, "https"), .tls = {.ca = files.Certificate()}});
  const auto got = trusting.Do({.method = "POST", .target = "/t", .body = "x"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->body, "POST /t  x");
  Client wary({.base_url = Url(*server, "https")});
  const auto refused = wary.Do({}).status();
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(Message(refused), HasSubstr("check the certificate authority"));
  Client careless({.base_url = Url(*server, "https"), .tls = {.insecure = true}});
  EXPECT_TRUE(careless.Do({}).ok());
  EXPECT_THAT(Raw(*server, "GET / HTTP/1.1\r\n\r\n"), ::testing::Not(HasSubstr("200 OK")));

  files.Make();
  Client renewed({.base_url = Url(*server, "https"), .tls = {.ca = files.Certificate()}});
  EXPECT_TRUE(renewed.Do({}).ok()) << renewed.Do({}).status();
}

TEST(Client, TellsItsTroublesApart) {
  std::atomic<bool> leave = false;
  auto server = StartServer([&](const Request&) {
    leave.wait(false);
    return Response();
  });
  Client client({.base_url = Url(*server)});
  const auto late = client.Do({.timeout = Millis(50)}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  leave = true;
  leave.notify_all();
  server->Stop();
  EXPECT_TRUE(absl::IsUnavailable(client.Do({}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Client({.base_url = "nonsense://x"}).Do({}).status()));
}

TEST(Client, FindsANewConnectionWhenTheServerClosedTheKeptOne) {
  auto server = StartServer(Echo);
  const int port = server->port();
  Client client({.base_url = Url(*server)});
  EXPECT_TRUE(client.Do({}).ok());
  server.reset();
  server = StartServer(Echo, {.port = port});
  EXPECT_TRUE(client.Do({}).ok());
}

// Answers one connection with `head` and then only what the test says.
class StreamServer {
 public:
  explicit StreamServer(const std::string& head)
      : acceptor_(io_, {asio::ip::make_address("127.0.0.1"), 0}), thread_([this, head] {
          boost::system::error_code error;
          acceptor_.accept(socket_, error);
          std::string request(4096, 0);
          socket_.read_some(asio::buffer(request), error);
          asio::write(socket_, asio::buffer(head), error);
        }) {}
  std::string Url() {
    return fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port());
  }
  void Say(const std::string& text) {
    if (thread_.joinable()) thread_.join();
    asio::write(socket_, asio::buffer(text));
  }
  void Close() {
    if (thread_.joinable()) thread_.join();
    socket_.close();
  }

 private:
  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  asio::ip::tcp::socket socket_{io_};
  std::jthread thread_;
};

constexpr const char* kEndless = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";

TEST(Stream, GivesPiecesAsTheyCome) {
  StreamServer server(kEndless);
  Client client({.base_url = server.Url()});
  std::string seen;
  const auto end = client.Stream({},
                                 {},
                                 [&](std::string_view piece) {
                                   if (piece.empty()) server.Say("one");
                                   if (piece == "one") server.Say("two");
                                   if (piece == "two") server.Close();
                                   seen += piece;
                                   return true;
                                 },
                                 {});
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(seen, "onetwo");
  EXPECT_EQ(end->body, "");
}

TEST(Stream, EndsWhenItIsToldToOrFallsSilent) {
  StreamServer server(kEndless);
  Client client({.base_url = server.Url()});
  std::stop_source source;
  const auto stopped = client.Stream(
      {}, {}, [&](std::string_view) { return source.request_stop(); }, source.get_token());
  EXPECT_TRUE(absl::IsCancelled(stopped.status())) << stopped.status();

  StreamServer refused(kEndless);
  const auto by_sink = Client({.base_url = refused.Url()})
                           .Stream({}, {}, [](std::string_view) { return false; }, {});
  EXPECT_TRUE(absl::IsCancelled(by_sink.status())) << by_sink.status();

  StreamServer silent(kEndless);
  const auto dead =
      Client({.base_url = silent.Url()})
          .Stream({}, {.silence = Millis(50)}, [](std::string_view) { return true; }, {});
  EXPECT_TRUE(absl::IsUnavailable(dead.status())) << dead.status();
  EXPECT_THAT(Message(dead.status()), HasSubstr("taken for dead"));

  StreamServer mute("");
  const auto nothing =
      Client({.base_url = mute.Url()})
          .Stream({}, {.first_byte = Millis(50)}, [](std::string_view) { return true; }, {});
  EXPECT_TRUE(absl::IsDeadlineExceeded(nothing.status())) << nothing.status();
}

TEST(Stream, AnErrorIsAnsweredWhole) {
  const auto server =
      StartServer([](const Request&) { return Response{.status = 410, .body = "gone"}; });
  const auto end =
      Client({.base_url = Url(*server)}).Stream({}, {}, [](std::string_view) { return false; }, {});
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->status, 410);
  EXPECT_EQ(end->body, "gone");
}

TEST(Client, SendsThePathAsItIs) {
  const auto server = StartServer(Echo);
  Client client({.base_url = Url(*server)});
  const absl::StatusOr<Response> response = client.Do({.target = "/a/../b/%2E%2E/c"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->body, StartsWith("GET /a/../b/%2E%2E/c "));
}

TEST(UrlEscape, KeepsWhatIsPlain) {
  EXPECT_EQ(UrlEscape("a-b_c.d~1"), "a-b_c.d~1");
  EXPECT_EQ(UrlEscape("a=b,c/d é"), "a%3Db%2Cc%2Fd%20%C3%A9");
}

}  // namespace
}  // namespace fluxqueue::http
