// One resource watched for one that takes what is learnt of it: from the API server's texts to
// values in a mailbox.
//
//   using News = std::variant<Seen<Pod>, Gone, Synced, Unread>;
//   Mailbox<News> mailbox;
//   Informers::List list;
//   list.push_back(std::make_unique<Informer<Pod>>(
//       cluster, InformerOptions{.watch = {.resource = kPods}}, Reader<Pod>{ParsePod}, mailbox));
//   Informers informers;
//   informers.Start(std::move(list));
//   for (News& news : mailbox.Take()) …
//
// What is put into the mailbox:
//   Seen     an object as it is now. Of each uid the last one waits, in the place of the first
//   Gone     the object is deleted, or selected no longer; behind what was seen of it last, since
//            how it ended counts, too. Seen again, it was not gone
//   Synced   once, behind all that the first list has shown. Later lists tell only the differences
//   Unread   an object that is there and cannot be read: an error of the reader, or it threw. What
//            was known of it before stays
//
// Bounded by the mailbox: each item counts with the size of the text that it was read from, and the
// watch waits for room. So does the API server, which in the end ends the watch; what came and went
// meanwhile is then never told.
//
// An object whose namespace, name or uid cannot be one (names.h) is not handed on at all. What is
// not handed on, and what is unread, is logged (a line each kSayInterval for each informer) and
// counted by `unread`.
//
// A reader that throws is caught; one that ends the process is not blamed on the object, as what is
// read here has not come to a quarantine (delivery/quarantine.h) yet. So readers only take apart
// and copy, and are fuzzed (tests/fuzz, `objects`).
//
// Lifetime: an informer is idle until Start(), and ends for good with Stop(); cluster, mailbox and
// all that its functions refer to must outlive it. Those functions are called on its own thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "libs/base/mailbox.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/cluster.h"
#include "libs/kubernetes/watch.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

template <typename T>
struct Seen {
  T object;
  uint64_t history = 0;  // of the store (watch.h); 0: it is not known
};
// `resource` is the plural of the informer's.
struct Gone {
  std::string_view resource;
  std::string space{};
  std::string name{};
  std::string uid{};
};
struct Synced {
  std::string_view resource;
  // Of what the list has shown, whether it could be read or not.
  std::set<std::string> uids{};
};
struct Unread {
  std::string_view resource;
  std::string space{};
  std::string name{};
  std::string uid{};
  std::string version{};  // resourceVersion
  std::string why{};      // for people
};

template <typename T>
using Change = std::variant<Seen<T>, Gone, Synced, Unread>;

struct InformerOptions {
  WatcherOptions watch{};
  std::function<void()> unread{};  // for a metric
};

template <typename T>
struct Reader {
  // Nothing: the object is of no interest, and not told of.
  std::function<absl::StatusOr<std::optional<T>>(std::string_view json)> parse;
  // Of what counts in an object: one with the digest that it had before, in the same history of the
  // store, is not told again.
  // Nothing: it is told always. None: all are.
  std::function<std::optional<uint64_t>(const T&)> digest{};
};

// What informers of all types share. Thread-safe, but for Start().
class InformerBase {
 public:
  static constexpr std::chrono::seconds kSayInterval{10};

  virtual ~InformerBase() { Stop(); }
  InformerBase(const InformerBase&) = delete;
  InformerBase& operator=(const InformerBase&) = delete;

  // REQUIRES: it was not started before.
  void Start();
  // Returns when nothing is told any more. Safe to call twice.
  void Stop();
  // OK while the watch stands, else the last error and since when it lasts.
  absl::Status Health() const;
  // The first list has been told. Stays true.
  bool synced() const;
  std::string_view resource() const { return options_.watch.resource.plural; }

  // Under which Gone waits; Seen waits under the uid.
  static std::string GoneKey(std::string_view uid);
  // Under which Synced waits. `resource`: its plural.
  static std::string SyncedKey(std::string_view resource);

 protected:
  struct Sink {
    std::function<absl::Status(const WatchEvent&)> seen;
    std::function<void(Gone)> gone;
    std::function<void(Synced)> synced;
    std::function<void(Unread)> unread;
  };

  InformerBase(Cluster& cluster, InformerOptions options)
      : cluster_(cluster), options_(std::move(options)) {}
  void SetSink(Sink sink) { sink_ = std::move(sink); }
  // Remembers the digest; false: it was this one before.
  bool IsNews(std::string_view uid, uint64_t digest);
  std::stop_token stop_token() const { return stop_.get_token(); }

  // What an item costs beside its text.
  static constexpr size_t kItemBytes = 256;
  static std::string UnreadKey(std::string_view uid);

 private:
  void OnEvent(const WatchEvent& event);
  void OnSeen(const WatchEvent& event);
  absl::Status CheckNames(const WatchEvent& event) const;
  void Say(const WatchEvent& event, const absl::Status& why);

  Cluster& cluster_;
  const InformerOptions options_;
  Sink sink_;
  std::stop_source stop_;

  // The watcher's thread only.
  std::set<std::string> listed_;  // until the first list ends
  bool synced_said_ = false;
  std::unordered_map<std::string, uint64_t> digests_;  // by uid
  uint64_t history_ = 1;                               // that they are of
  std::optional<std::chrono::steady_clock::time_point> said_at_;
  uint64_t unsaid_ = 0;

  std::unique_ptr<Watcher> watcher_;  // last: its thread uses all of the above
};

template <typename T>
class Informer final : public InformerBase {
 public:
  // `Item` can be made of Seen<T>, Gone and Synced; where it can be made of Unread, too, that is
  // put in.
  template <typename Item>
  Informer(Cluster& cluster, InformerOptions options, Reader<T> reader, Mailbox<Item>& mailbox)
      : InformerBase(cluster, std::move(options)), reader_(std::move(reader)) {
    SetSink(
        {.seen =
             [this, &mailbox](const WatchEvent& event) {
               return Hand(event, [&](T object) { PutSeen(event, std::move(object), mailbox); });
             },
         .gone =
             [this, &mailbox](Gone gone) {
               const std::string key = GoneKey(gone.uid);
               mailbox.Withdraw(UnreadKey(gone.uid));
               if (!mailbox.WaitForRoom(stop_token())) return;
               mailbox.Post(key, std::move(gone), kItemBytes);
             },
         .synced = [this, &mailbox](
                       Synced synced) { mailbox.Post(SyncedKey(resource()), std::move(synced)); },
         .unread = [this, &mailbox](Unread unread) { PutUnread(std::move(unread), mailbox); }});
  }
  // For who keeps a picture of his own: `tell` is called with each change, and must not block.
  Informer(Cluster& cluster,
           InformerOptions options,
           Reader<T> reader,
           const std::function<void(Change<T>)>& tell)
      : InformerBase(cluster, std::move(options)), reader_(std::move(reader)) {
    SetSink({.seen =
                 [this, tell](const WatchEvent& event) {
                   return Hand(event, [&](T object) {
                     tell(Seen<T>{std::move(object), event.history});
                   });
                 },
             .gone = tell,
             .synced = tell,
             .unread = tell});
  }
  ~Informer() override { Stop(); }

 private:
  template <typename Put>
  absl::Status Hand(const WatchEvent& event, Put put) {
    ASSIGN_OR_RETURN(std::optional<T> object, reader_.parse(event.object));
    if (!object.has_value()) return absl::OkStatus();
    if (reader_.digest) {
      const std::optional<uint64_t> digest = reader_.digest(*object);
      if (digest.has_value() && !IsNews(event.uid, *digest)) return absl::OkStatus();
    }
    put(*std::move(object));
    return absl::OkStatus();
  }

  template <typename Item>
  void PutSeen(const WatchEvent& event, T object, Mailbox<Item>& mailbox) {
    if (!mailbox.WaitForRoom(stop_token())) return;
    mailbox.Withdraw(GoneKey(event.uid));
    mailbox.Withdraw(UnreadKey(event.uid));
    mailbox.Post(std::string(event.uid),
                 Seen<T>{std::move(object), event.history},
                 kItemBytes + event.object.size());
  }

  template <typename Item>
  void PutUnread([[maybe_unused]] Unread unread, [[maybe_unused]] Mailbox<Item>& mailbox) {
    if constexpr (std::is_constructible_v<Item, Unread>) {
      const std::string key = UnreadKey(unread.uid);
      const size_t bytes = kItemBytes + unread.why.size();
      if (!mailbox.WaitForRoom(stop_token())) return;
      mailbox.Post(key, std::move(unread), bytes);
    }
  }

  const Reader<T> reader_;
};

// An owner's informers. Thread-safe: when Start and Stop meet, the later one decides.
class Informers {
 public:
  using List = std::vector<std::unique_ptr<InformerBase>>;

  ~Informers() { Stop(); }

  // Stops those there are, and starts these.
  void Start(List informers);
  // Returns when none of them tells anything any more. Safe to call twice.
  void Stop();

  bool empty() const;
  // OK: none is there, or all watches stand; else the first that does not.
  absl::Status Health() const;
  // As Health(); and all have told their first list.
  absl::Status Ready() const;

 private:
  mutable std::mutex mutex_;
  List informers_;  // guarded by mutex_
};

}  // namespace fluxqueue::kubernetes
