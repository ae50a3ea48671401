// What `fluxqueue match` does: jobs on one graph, command by command, in the manner of Fluxion's
// resource-query. The commands are the table in match_shell.cc; `help` shows it.
//
// With the engine `fluxion` its library finds the places, and our own engine is told of them: what
// is drawn, listed and explained is what it knows.
//
// Pure but for the files that it asks for, and that library. Not thread-safe.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "libs/fluxion/context.h"
#include "libs/graph/match_operation.h"
#include "libs/graph/resource_set.h"
#include "libs/reapi/session.h"

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

// The content of a file, or why there is none.
using FileReader = std::function<absl::StatusOr<std::string>(const std::string& name)>;

struct MatchOptions {
  std::string graph = {};  // a file: JGF, or R version 1
  std::string policy = "first";
  std::string library = {};  // Fluxion's, which then decides; empty: our own engine does
  std::string format = {};   // as ParseSetFormat; empty: drawings
  bool json = false;         // each answer is an object on one line
};

class MatchShell {
 public:
  // InvalidArgument for the options and the graph; what `read` says when there is no graph.
  static absl::StatusOr<MatchShell> Make(const MatchOptions& options, FileReader read);

  // What the command says, in whole lines. Its name and arguments: {"match", "allocate", "a.yaml"}.
  // An error says what is known or allowed, and nothing has changed.
  absl::StatusOr<std::string> Do(const std::vector<std::string>& command);
  // Some match found no place.
  bool refused() const { return refused_; }

  // Does what stands in the lines of `in`, up to its end or `quit`. Empty lines and those that
  // begin with # do nothing; errors are said and do not end it. Returns the exit status: 2 after an
  // error, 1 when some match found no place, else 0.
  int Run(std::istream& in, std::ostream& out, bool prompt);

 private:
  using Words = std::span<const std::string>;
  struct Reply;
  struct Command;

  MatchShell(std::unique_ptr<reapi::Session> session,
             std::unique_ptr<fluxion::Context> decides,
             std::optional<graph::SetFormat> format,
             bool json,
             FileReader read);

  static std::span<const Command> Commands();
  static std::string CommandNames();

  absl::StatusOr<Reply> Match(Words words);
  absl::StatusOr<Reply> Explain(Words words);
  absl::StatusOr<Reply> Cancel(Words words);
  absl::StatusOr<Reply> CancelPart(Words words);
  absl::StatusOr<Reply> Info(Words words);
  absl::StatusOr<Reply> List(Words words);
  absl::StatusOr<Reply> Find(Words words);
  absl::StatusOr<Reply> SetStatus(Words words);
  absl::StatusOr<Reply> GetStatus(Words words);
  absl::StatusOr<Reply> SetProperty(Words words);
  absl::StatusOr<Reply> GetProperty(Words words);
  absl::StatusOr<Reply> Attach(Words words);
  absl::StatusOr<Reply> Remove(Words words);
  absl::StatusOr<Reply> Help(Words words);
  absl::StatusOr<Reply> Quit(Words words);

  absl::StatusOr<reapi::Placement> Place(graph::MatchOperation operation,
                                         const std::string& jobspec,
                                         reapi::JobNumber job);
  // That our own engine decides.
  absl::Status CheckNative(std::string_view command) const;
  Reply Granted(const std::string& file,
                reapi::JobNumber job,
                const reapi::Placement& placement) const;
  Reply Refused(const std::string& file,
                std::string_view outcome,
                const graph::GraphExplanation& why);
  Reply JobReply(reapi::JobNumber job, const reapi::JobInfo& info) const;
  const graph::ResourceGraph& resources() const { return session_->engine().graph(); }
  // A drawing, or what the format says.
  std::string TextOf(const graph::Holding& holding) const;
  nlohmann::ordered_json JsonOf(const graph::Holding& holding) const;
  absl::Status DoLine(const std::string& line, std::ostream& out);

  std::unique_ptr<reapi::Session> session_;
  std::unique_ptr<fluxion::Context> decides_;  // null: the session does
  std::optional<graph::SetFormat> format_;
  bool json_;
  FileReader read_;
  bool refused_ = false;
  bool done_ = false;
};

}  // namespace fluxqueue::cli
