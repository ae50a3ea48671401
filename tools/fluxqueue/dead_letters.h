// Dead letters: messages that a service could not handle, with the reason (libs/delivery/wire.h).
//
// What became of one is a record of the same topic, an answer: it names the letter's offset and
// says "retried" or "dropped". A retry appends the original message to its topic again, under a
// stream of its own ("retry/<offset>") with sequence 1: the inbox of every consumer takes it once,
// however often it is repeated. A consumer that had handled the original is told twice then, as
// after any repetition; the job's state machine drops what is stale.
//
// A letter may be of an object of the cluster that a service could not handle and leaves out
// (libs/delivery/quarantine.h). It has no message; a retry has the service handle the object once
// more. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libs/delivery/wire.h"
#include "libs/kafka/message.h"

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

struct Letter {
  int64_t number = 0;  // its offset
  int64_t time_ms = 0;
  std::string service{};  // that could not handle it
  std::string reason{};
  std::string topic{};  // where it was read, or was to go
  int partition = 0;
  int64_t offset = 0;  // there
  std::string key{};
  std::string value{};
  kafka::Headers headers{};
  // Of an object: the service's shard, the object's kind and uid; its name is in `key`.
  std::string shard{};
  std::string kind{};
  std::string uid{};
  bool unproven = false;  // the message is not of whom it says
  std::string answer{};   // "retried", "dropped"; empty: it waits for one
  int64_t answered_ms = 0;

  bool OfObject() const { return !kind.empty(); }
};

class DeadLetters {
 public:
  // The records of the topic, in order.
  void Fold(const kafka::Message& message);
  const std::map<int64_t, Letter>& letters() const { return letters_; }  // by number

 private:
  std::map<int64_t, Letter> letters_;
};

// "job_started"; "?" of what does not decode; of an object its kind.
std::string TypeOf(const Letter& letter);
// Where it was read.
std::string PlaceOf(const Letter& letter);
// The objects that wait for an answer, as far as a line has room for; empty: none do.
std::string ObjectsText(const DeadLetters& letters);
// The message in readable form.
std::string ContentText(const Letter& letter);

// What a retry appends to letter.topic, letter.partition. REQUIRES: it is of no object.
// InvalidArgument: it does not decode, so that no consumer could ever take it.
// `keys`: by which its message must be signed; null: it need not be.
absl::StatusOr<delivery::WireRecord> RetryOf(const Letter& letter, const signing::Keys* keys);
delivery::WireRecord AnswerTo(const Letter& letter, const std::string& answer);

}  // namespace fluxqueue::cli
