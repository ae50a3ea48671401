// Server and client against each other on loopback, and the server against raw bytes.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/http/certificate.h"
#include "libs/http/certificate_metrics.h"
#include "libs/http/client.h"
#include "libs/http/server.h"

namespace fluxqueue::http {
namespace {

namespace asio = boost::asio;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
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

// A connection of a client that does not speak as it should.
class RawClient {
 public:
  explicit RawClient(const Server& server) {
    boost::system::error_code error;
    socket_.connect({asio::ip::make_address("127.0.0.1"), static_cast<uint16_t>(server.port())},
                    error);
    EXPECT_FALSE(error) << error.message();
  }
  void Send(const std::string& bytes) {
    boost::system::error_code error;
    asio::write(socket_, asio::buffer(bytes), error);
  }
  // What comes until `end` has, or the server closes.
  std::string ReadUntil(const std::string& end) {
    std::string text;
    asio::async_read_until(socket_,
                           asio::dynamic_buffer(text),
                           end,
                           [&](boost::system::error_code error, size_t size) {
                             if (!error) text.resize(size);
                           });
    Finish();
    return text;
  }
  std::string Ask() {
    Send("GET /x HTTP/1.1\r\n\r\n");
    return ReadUntil("/x");
  }
  // Waits for the server's close.
  std::string ReadAll() {
    std::string text;
    asio::async_read(
        socket_, asio::dynamic_buffer(text), [](boost::system::error_code /*error*/, size_t) {});
    Finish();
    return text;
  }

 private:
  static constexpr std::chrono::seconds kPatience{10};

  // Runs what was begun.
  void Finish() {
    io_.restart();
    io_.run_for(kPatience);
    if (io_.stopped()) return;
    ADD_FAILURE() << "the server neither answered nor closed the connection";
    socket_.cancel();
    io_.run();
  }

  asio::io_context io_;
  asio::ip::tcp::socket socket_{io_};
};

// Sends the bytes and reads until the server closes.
std::string Raw(const Server& server, const std::string& bytes) {
  RawClient client(server);
  client.Send(bytes);
  return client.ReadAll();
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
  void Make(int days = 2) const {
    const std::string command = fmt::format(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout {0}/key.new -out {0}/crt.new -days {1} "
        "-subj /CN=test -addext subjectAltName=IP:127.0.0.1 2>/dev/null && mv {0}/key.new {0}/key "
        "&& "
        "mv {0}/crt.new {0}/crt",
        folder_,
        days);
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  ServerTls tls() const { return {folder_ + "/crt", folder_ + "/key"}; }
  // NAME.crt and NAME.key of a client, signed by it; `subject` empty: its common name is NAME.
  void Sign(const std::string& name,
            const std::string& subject = "",
            const std::string& dns_name = "none") const {
    const std::string command = fmt::format(
        "cd {0} && openssl req -newkey rsa:2048 -nodes -keyout {1}.key -out {1}.csr -subj {2} "
        "-addext subjectAltName=DNS:{3} 2>/dev/null && openssl x509 -req -in {1}.csr -CA crt "
        "-CAkey key -CAcreateserial -copy_extensions copy -days 2 -out {1}.crt 2>/dev/null",
        folder_,
        name,
        subject.empty() ? "/CN=" + name : subject,
        dns_name);
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string Certificate() const { return Read("crt"); }

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

TEST(Certificate, ItsEndIsAMetric) {
  const TlsFiles files;
  metrics::Registry registry;
  ExportCertificates(registry,
                     "queue",
                     {{"grpc", files.tls().certificate_file}, {"api", ""}, {"webhook", "/no/crt"}});
  const auto value = [&registry] {
    const std::string name =
        "fluxqueue_certificate_expiration_timestamp_seconds{certificate=\"grpc\",component=\"queue"
        "\"} ";
    const std::string text = registry.Text();
    EXPECT_THAT(text, Not(HasSubstr("api")));
    EXPECT_THAT(text, Not(HasSubstr("webhook")));
    const size_t at = text.find(name);
    return at == text.npos ? 0.0 : std::stod(text.substr(at + name.size()));
  };
  const auto end = [&files] {
    const auto at = CertificateEnd(files.tls().certificate_file);
    return at.ok() ? std::chrono::duration<double>(at->time_since_epoch()).count() : -1.0;
  };
  EXPECT_EQ(value(), end());
  files.Make(/*days=*/3);
  EXPECT_EQ(value(), end()) << "a renewed one is read";
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

// What the server turned away, by its reasons.
class Refusals {
 public:
  std::function<void(Refusal)> Counter() {
    return [this](Refusal refusal) {
      const std::lock_guard lock(mutex_);
      reasons_.emplace_back(RefusalName(refusal));
      counted_.notify_all();
    };
  }
  std::vector<std::string> reasons() {
    const std::lock_guard lock(mutex_);
    return reasons_;
  }
  // As soon as there are `count`, or in vain.
  std::vector<std::string> WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    counted_.wait_for(lock, std::chrono::seconds(20), [&] { return reasons_.size() >= count; });
    return reasons_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable counted_;
  std::vector<std::string> reasons_;
};

using ::testing::ElementsAre;

TEST(Server, DrainsItsConnectionsBeforeItCloses) {
  auto server = StartServer(Echo, {.drain = Millis(3'000)});
  RawClient kept(*server);
  EXPECT_THAT(kept.Ask(), Not(HasSubstr("Connection: close")));
  const std::jthread stopper([&] { server->Stop(); });
  std::string answer;
  while (answer.find("Connection: close") == std::string::npos) {
    answer = RawClient(*server).Ask();
    ASSERT_THAT(answer, HasSubstr("200 OK"));
  }
  EXPECT_THAT(kept.Ask(), AllOf(HasSubstr("200 OK"), HasSubstr("Connection: close")));
}

TEST(Server, StopAnswersWhatHasBegunToCome) {
  auto server = StartServer(Echo);
  RawClient begun(*server);
  begun.Send("POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r\nha");
  RawClient idle(*server);
  EXPECT_THAT(idle.Ask(), HasSubstr("200 OK"));  // so the other one was accepted
  const std::jthread stopper([&] { server->Stop(Millis(30'000)); });
  idle.ReadAll();
  begun.Send("lf");
  EXPECT_THAT(begun.ReadUntil("half"), AllOf(HasSubstr("200 OK"), HasSubstr("Connection: close")));
}

TEST(Bounds, IdleConnectionsMakeRoomTheOldestFirst) {
  Refusals refusals;
  // One thread: whose answer was last is then known to it, too.
  const auto server =
      StartServer(Echo, {.threads = 1, .max_connections = 3, .refused = refusals.Counter()});
  RawClient kept(*server);
  EXPECT_THAT(kept.Ask(), HasSubstr("200 OK"));
  // None of these sends a whole request. Each goes for the next, and who is served stays.
  RawClient silent(*server);
  RawClient slow(*server);
  slow.Send("GET /x HT");
  RawClient third(*server);
  EXPECT_EQ(silent.ReadAll(), "");
  RawClient fourth(*server);
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_THAT(kept.Ask(), HasSubstr("200 OK"));
  EXPECT_THAT(fourth.Ask(), HasSubstr("200 OK"));
  EXPECT_THAT(refusals.reasons(), ElementsAre("evicted", "evicted"));
  // Of those that were served, the one goes whose last request is longest ago.
  EXPECT_THAT(third.Ask(), HasSubstr("200 OK"));
  RawClient fifth(*server);
  EXPECT_EQ(kept.ReadAll(), "");
  EXPECT_THAT(fifth.Ask(), HasSubstr("200 OK"));
  EXPECT_THAT(third.Ask(), HasSubstr("200 OK"));
}

// A handler that answers when it is told to, from a thread that is none of the server's.
class LateAnswers {
 public:
  AsyncHandler Handler() {
    return [this](const Request&, Respond respond) {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(respond));
      came_.notify_all();
    };
  }
  void WaitFor(size_t requests) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        came_.wait_for(lock, std::chrono::seconds(10), [&] { return waiting_.size() == requests; }))
        << requests << " requests to come";
  }
  void Answer(const std::string& body) {
    std::vector<Respond> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(waiting_);
    }
    for (const Respond& respond : waiting) respond({.body = body});
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Respond> waiting_;
};

TEST(Bounds, WhatIsBeingAnsweredStays) {
  Refusals refusals;
  LateAnswers late;
  const auto server =
      StartServer(late.Handler(), {.max_connections = 2, .refused = refusals.Counter()});
  RawClient first(*server);
  RawClient second(*server);
  for (RawClient* client : {&first, &second}) client->Send("GET /x HTTP/1.1\r\n\r\n");
  late.WaitFor(2);
  EXPECT_EQ(RawClient(*server).ReadAll(), "");
  EXPECT_THAT(refusals.reasons(), ElementsAre("connections"));
  late.Answer("/x");
  EXPECT_THAT(first.ReadUntil("/x"), HasSubstr("200 OK"));
  EXPECT_THAT(second.ReadUntil("/x"), HasSubstr("200 OK"));
}

TEST(Bounds, SlowClientsAreCutOff) {
  Refusals refusals;
  const TlsFiles files;
  const auto server =
      StartServer(Echo, {.request_timeout = Millis(50), .refused = refusals.Counter()});
  RawClient head(*server);
  head.Send("GET /x HT");
  EXPECT_EQ(head.ReadAll(), "");
  RawClient body(*server);
  body.Send("POST /x HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(body.ReadAll(), "");
  // It counts from the first byte: each of these comes in time for the one before.
  RawClient trickle(*server);
  trickle.Send("POST /x HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n");
  std::atomic<bool> closed = false;
  std::jthread sender([&] {
    while (!closed) {
      trickle.Send("a");
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(trickle.ReadAll(), "");
  closed = true;
  sender.join();
  const auto wary = StartServer(
      Echo, {.handshake_timeout = Millis(50), .tls = files.tls(), .refused = refusals.Counter()});
  EXPECT_EQ(RawClient(*wary).ReadAll(), "");
  EXPECT_THAT(refusals.reasons(), ElementsAre("slow", "slow", "slow", "slow"));
  const auto patient =
      StartServer(Echo, {.idle_timeout = Millis(50), .refused = refusals.Counter()});
  RawClient idle(*patient);
  EXPECT_THAT(idle.Ask(), HasSubstr("200 OK"));
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_EQ(refusals.reasons().size(), 4U);
}

TEST(Bounds, WhoDoesNotTakeItsAnswerIsCutOff) {
  Refusals refusals;
  const auto large = [](const Request&) { return Response{.body = std::string(64 << 20, 'x')}; };
  const auto server =
      StartServer(large, {.request_timeout = Millis(200), .refused = refusals.Counter()});
  RawClient client(*server);
  client.Send("GET /x HTTP/1.1\r\n\r\n");
  EXPECT_THAT(refusals.WaitFor(1), ElementsAre("slow"));
}

TEST(Bounds, RequestsOfOneSourceAndTheirBodies) {
  Refusals refusals;
  LateAnswers late;
  const auto server = StartServer(late.Handler(),
                                  {.max_requests_per_source = 2,
                                   .max_body_bytes = 1000,
                                   .max_bodies_bytes = 1500,
                                   .refused = refusals.Counter()});
  const auto post = [](int bytes) {
    return fmt::format(
        "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", bytes, std::string(bytes, 'x'));
  };
  RawClient first(*server);
  first.Send(post(1000));
  late.WaitFor(1);
  EXPECT_THAT(Raw(*server, post(501)), StartsWith("HTTP/1.1 503"));
  RawClient second(*server);
  second.Send(post(500));
  late.WaitFor(2);
  const std::string refused = Raw(*server, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1"));
  EXPECT_THAT(refusals.reasons(), ElementsAre("memory", "source"));
  late.Answer("done");
  EXPECT_THAT(first.ReadUntil("done"), HasSubstr("200 OK"));
  EXPECT_THAT(second.ReadUntil("done"), HasSubstr("200 OK"));
  // What they had is free.
  first.Send(post(1000));
  second.Send(post(500));
  late.WaitFor(2);
  late.Answer("done");
}

TEST(Server, AnswersRequestsThatCameTogether) {
  const auto server = StartServer(Echo);
  EXPECT_THAT(Raw(*server,
                  "GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"
                  "GET /c HTTP/1.1\r\nConnection: close\r\n\r\n"),
              AllOf(HasSubstr("GET /a"), HasSubstr("POST /b  hi"), HasSubstr("GET /c")));
}

TEST(Tls, AsksForTheClientsCertificate) {
  const TlsFiles files;
  const TlsFiles others;
  files.Sign("kube-apiserver");
  files.Sign("somebody");
  others.Sign("kube-apiserver");
  Refusals refusals;
  ServerTls tls = files.tls();
  tls.client_authority_file = tls.certificate_file;
  const auto server = StartServer(Echo, {.tls = tls, .refused = refusals.Counter()});
  const auto ask = [&](const Server& of, const std::string& certificate, const std::string& key) {
    Client client({.base_url = Url(of, "https"),
                   .tls = {.ca = files.Certificate(), .certificate = certificate, .key = key}});
    const auto answer = client.Do({.target = "/x"});
    return answer.ok() ? answer->status : 0;
  };
  EXPECT_EQ(ask(*server, files.Read("kube-apiserver.crt"), files.Read("kube-apiserver.key")), 200);
  EXPECT_EQ(ask(*server, files.Read("somebody.crt"), files.Read("somebody.key")), 200);
  EXPECT_EQ(ask(*server, "", ""), 403);
  EXPECT_EQ(ask(*server, others.Read("kube-apiserver.crt"), others.Read("kube-apiserver.key")), 0);
  EXPECT_THAT(refusals.WaitFor(2), ElementsAre("certificate", "certificate"));

  tls.client_names = {"front-proxy", "kube-apiserver"};
  const auto named = StartServer(Echo, {.tls = tls, .refused = refusals.Counter()});
  EXPECT_EQ(ask(*named, files.Read("kube-apiserver.crt"), files.Read("kube-apiserver.key")), 200);
  EXPECT_EQ(ask(*named, files.Read("somebody.crt"), files.Read("somebody.key")), 403);
  EXPECT_EQ(refusals.WaitFor(3).size(), 3U);

  tls.open_paths = {"/x"};
  const auto open = StartServer(Echo, {.tls = tls, .refused = refusals.Counter()});
  EXPECT_EQ(ask(*open, "", ""), 200);
  EXPECT_EQ(refusals.reasons().size(), 3U);

  tls.client_authority_file = "/no/ca";
  EXPECT_THAT(Message(Server::Start({.tls = tls}, Echo).status()),
              HasSubstr("TLS client authority /no/ca"));
}

// As the API server judges its own front proxies (requestheader-allowed-names).
TEST(Tls, KnowsAClientByItsCommonNameAlone) {
  const TlsFiles files;
  files.Sign("proxy");
  files.Sign("dns", "/CN=somebody", "proxy");
  files.Sign("first", "/CN=proxy/CN=somebody");
  files.Sign("last", "/CN=somebody/CN=proxy");
  files.Sign("nameless", "/O=proxy", "proxy");
  ServerTls tls = files.tls();
  tls.client_authority_file = tls.certificate_file;
  tls.client_names = {"proxy"};
  const auto server = StartServer(Echo, {.tls = tls});
  const auto ask = [&](const std::string& name) {
    Client client({.base_url = Url(*server, "https"),
                   .tls = {.ca = files.Certificate(),
                           .certificate = files.Read(name + ".crt"),
                           .key = files.Read(name + ".key")}});
    const auto answer = client.Do({.target = "/x"});
    return answer.ok() ? answer->status : 0;
  };
  EXPECT_EQ(ask("proxy"), 200);
  EXPECT_EQ(ask("dns"), 403);
  EXPECT_EQ(ask("first"), 403);
  EXPECT_EQ(ask("last"), 200);
  EXPECT_EQ(ask("nameless"), 403);
}

TEST(Client, TellsItsTroublesApart) {
  std::atomic<bool> leave = false;
  const auto server = StartServer([&](const Request&) {
    leave.wait(false);
    return Response();
  });
  Client client({.base_url = Url(*server)});
  const auto late = client.Do({.timeout = Millis(50)}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  leave = true;
  leave.notify_all();
  // A port that is bound, and listens for nothing: what the server leaves, another test may take.
  asio::io_context io;
  const asio::ip::tcp::acceptor mute = [&io] {
    asio::ip::tcp::acceptor bound(io, asio::ip::tcp::v4());
    bound.bind({asio::ip::address_v4::loopback(), 0});
    return bound;
  }();
  const auto refused =
      Client({.base_url = fmt::format("http://127.0.0.1:{}", mute.local_endpoint().port())})
          .Do({})
          .status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
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
