#include "libs/conformance/transcript.h"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/conformance/better_answer.h"

namespace fluxqueue::conformance {
namespace {

using nlohmann::json;

void Sort(json* list) {
  if (list->is_array()) std::sort(list->begin(), list->end());
}

// With sorted lists where their order says nothing.
json Normal(json out) {
  const auto found = out.find("R");
  if (found == out.end()) return out;
  Sort(&*found);
  for (const char* list : {"/execution/R_lite",
                           "/graph/nodes",
                           "/graph/edges",
                           "/scheduling/graph/nodes",
                           "/scheduling/graph/edges"}) {
    const json::json_pointer place(list);
    if (found->is_object() && found->contains(place)) Sort(&found->at(place));
  }
  return out;
}

bool Succeeded(const json& out) {
  return out.value("rc", -1) == 0;
}

// Whether what is held changes with a call that succeeds.
bool Changes(const json& call) {
  const std::string function = call.at("fn");
  if (function == "match_with_jobid") return call.at("args").at("op").get<int>() <= 3;
  return function == "cancel" || function == "partial_cancel" || function == "update_allocate";
}

class Player {
 public:
  Player(const json& options, CallTarget* target) : options_(options), target_(target) {}

  void Play(const json& call) {
    ++result_.calls;
    const json given = Normal(target_->Call(call));
    const json expected = Normal(call.at("out"));
    Context& context = contexts_[call.at("ctx")];
    if (given == expected) {
      ++result_.equal;
    } else {
      Judge({options_, call, expected, given, context.history}, &context);
    }
    Note(call, &context);
  }

  TranscriptResult Take() { return std::move(result_); }

 private:
  struct Context {
    ContextHistory history;
    bool apart = false;  // it holds other things than the recorded one
  };

  void Judge(const RecordedCall& call, Context* context) {
    CallDifference difference{
        result_.calls, call.call.at("fn"), call.expected.dump(), call.given.dump(), {}};
    for (const BetterAnswer& rule : BetterAnswers()) {
      if (!rule.applies(call)) continue;
      difference.better = rule.name;
      break;
    }
    if (!difference.better.empty()) {
      result_.better.push_back(std::move(difference));
    } else if (context->apart) {
      ++result_.following;
    } else {
      result_.different.push_back(std::move(difference));
    }
    if (Changes(call.call)) GoOn(call, context);
  }

  // What was held only here is given back, so that what follows can be compared.
  void GoOn(const RecordedCall& call, Context* context) {
    const bool only_here = Succeeded(call.given) && !Succeeded(call.expected);
    if (only_here && call.call.at("args").contains("jobid") && call.call.at("fn") != "cancel") {
      target_->Call({{"fn", "cancel"},
                     {"ctx", call.call.at("ctx")},
                     {"args", {{"jobid", call.call.at("args").at("jobid")}, {"noent_ok", true}}}});
      // `first` remembers where it has been.
      const std::string policy = options_.at("matcher_policy");
      context->apart = context->apart || policy.starts_with("first");
      return;
    }
    // A part of what it gives back may be gone, although Fluxion failed.
    const bool halfway =
        call.call.at("fn") == "partial_cancel" && call.expected.value("errno", "") == "0";
    if (halfway || Succeeded(call.given) || Succeeded(call.expected)) context->apart = true;
  }

  void Note(const json& call, Context* context) {
    const std::string function = call.at("fn");
    ContextHistory& history = context->history;
    if (function == "clone") {
      history.cloned = true;
      contexts_[call.at("args").at("as")] = *context;
    }
    history.grown = history.grown || function == "add_subgraph";
    history.shrunk = history.shrunk || function == "remove_subgraph";
    if (function == "match_with_jobid" && call.at("out").at("errno") == "EINVAL") {
      const auto& jobspec = call.at("args").at("jobspec").get_ref<const std::string&>();
      if (jobspec.find("\"exclusive\": true") != std::string::npos) {
        history.refused_exclusive = true;
      }
    }
  }

  const json& options_;
  CallTarget* target_;
  std::map<std::string, Context> contexts_;
  TranscriptResult result_;
};

absl::StatusOr<TranscriptResult> Play(const json& transcript, CallTarget* target) {
  const json& options = transcript.at("options");
  RETURN_IF_ERROR(target->Begin(transcript.at("graph").dump(), options.dump()));
  Player player(options, target);
  for (const json& call : transcript.at("calls")) player.Play(call);
  return player.Take();
}

}  // namespace

absl::StatusOr<TranscriptResult> PlayTranscript(std::string_view line, CallTarget* target) {
  try {
    return Play(json::parse(line), target);
  } catch (const json::exception& error) {
    return InvalidArgument("a transcript of another form than documented: {}", error.what());
  }
}

}  // namespace fluxqueue::conformance
