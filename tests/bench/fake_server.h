// The HTTP side of the fake API server, on one thread: requests, endless watches, and what the
// benchmark tells it:
//
//   POST /bench/submit?prefix=P&count=N&rate=R&cpu=MILLIS&run=MS   Jobs, R a second; 0: all at
//        once, as fast as the watches take them
//   GET /bench/state        how many Jobs there are, are bound, are complete
//   GET /bench/jobs?prefix=P   a line for each: uid, and when it was created, bound, ended
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "tests/bench/fake_cluster.h"

#include "absl/status/status.h"

namespace fluxqueue::bench {

// Of a request for Kubernetes' API.
struct ApiPath {
  std::string plural;
  std::string name;
  std::string subresource;
};
// "/apis/batch/v1/namespaces/a/jobs/b" → {"jobs", "b", ""}; an empty plural: not of this API.
ApiPath ParseApiPath(std::string_view path);

// "a=1&b=x%20y" as a map.
std::map<std::string, std::string, std::less<>> ParseQuery(std::string_view query);

// Of a list or a watch: what is asked for.
struct Selected {
  std::string plural;
  // The selector of labels is one that nothing here meets: all Jobs and pods are held.
  bool none = false;
};
Selected ParseSelected(const std::string& path,
                       const std::map<std::string, std::string, std::less<>>& query);

// One watch: lines go out in the order they came, as many at once as have gathered.
class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  WatchStream(boost::asio::ip::tcp::socket socket,
              Selected selected,
              std::chrono::steady_clock::time_point end);

  // Sends the headers, then `lines`.
  void Begin(const std::string& lines);
  void Push(std::string_view lines);
  // The end of the stream, in order.
  void Finish();

  const std::string& plural() const { return selected_.plural; }
  // Changes of `plural` are told; bookmarks always are.
  bool Shows(std::string_view plural) const { return !selected_.none && plural == this->plural(); }
  bool gone() const { return gone_; }
  bool Over(std::chrono::steady_clock::time_point now) const { return now >= end_; }
  size_t waiting() const { return waiting_.size(); }

 private:
  void ScheduleFlush();
  void Flush();

  boost::asio::ip::tcp::socket socket_;
  const Selected selected_;
  const std::chrono::steady_clock::time_point end_;
  std::string head_;     // raw bytes that go out before what waits
  std::string waiting_;  // lines that are not sent yet
  std::string sending_;
  bool busy_ = false;
  bool finishing_ = false;
  bool gone_ = false;
};

class FakeServer {
 public:
  FakeServer(boost::asio::io_context& io, int nodes);

  // Listens on 127.0.0.1. FailedPrecondition: the port is in use.
  absl::Status Listen(uint16_t port);

  struct Incoming {
    std::string method;
    std::string path;
    std::string query;
    std::string body;
  };
  // Any request but a watch.
  Answer Serve(const Incoming& request);
  static bool IsWatch(const Incoming& request);
  // Takes the connection over.
  void Watch(const Incoming& request, boost::asio::ip::tcp::socket socket);

 private:
  struct Feed {
    JobShape shape;
    size_t count = 0;
    size_t done = 0;
    double rate = 0;  // a second; 0: no limit
    std::chrono::steady_clock::time_point begin;
  };

  void Accept();
  Answer Control(const Incoming& request);
  Answer Api(const Incoming& request);
  void Tell(std::string_view plural, std::string_view line);
  void RunFeeds();
  void ScheduleFeeds();
  void ScheduleEnds();
  void SayBookmarks();
  bool WatchesAreBehind() const;

  boost::asio::io_context& io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer feed_timer_;
  boost::asio::steady_timer end_timer_;
  boost::asio::steady_timer bookmark_timer_;
  std::list<std::shared_ptr<WatchStream>> watches_;
  std::deque<Feed> feeds_;
  bool feeding_ = false;
  bool ending_ = false;
  FakeCluster cluster_;  // last: it tells its first objects to the watches, of which there are none
};

}  // namespace fluxqueue::bench
