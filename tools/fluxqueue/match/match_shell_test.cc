#include "tools/fluxqueue/match/match_shell.h"

#include <map>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two nodes of two cores each.
const char kJgf[] = R"({"graph": {"nodes": [
  {"id": "0", "metadata": {"type": "cluster", "id": 0, "paths": {"containment": "/cluster0"}}},
  {"id": "1", "metadata": {"type": "node", "rank": 0, "id": 0, "properties": {"ssd": ""},
                           "paths": {"containment": "/cluster0/node0"}}},
  {"id": "2", "metadata": {"type": "node", "rank": 1, "id": 1,
                           "paths": {"containment": "/cluster0/node1"}}},
  {"id": "3", "metadata": {"type": "core", "rank": 0, "id": 0,
                           "paths": {"containment": "/cluster0/node0/core0"}}},
  {"id": "4", "metadata": {"type": "core", "rank": 0, "id": 1,
                           "paths": {"containment": "/cluster0/node0/core1"}}},
  {"id": "5", "metadata": {"type": "core", "rank": 1, "id": 0,
                           "paths": {"containment": "/cluster0/node1/core0"}}},
  {"id": "6", "metadata": {"type": "core", "rank": 1, "id": 1,
                           "paths": {"containment": "/cluster0/node1/core1"}}}],
 "edges": [{"source": "0", "target": "1"}, {"source": "0", "target": "2"},
           {"source": "1", "target": "3"}, {"source": "1", "target": "4"},
           {"source": "2", "target": "5"}, {"source": "2", "target": "6"}]}})";
const char kGpu[] = R"({"graph": {"nodes": [
  {"id": "0", "metadata": {"type": "cluster", "id": 0, "paths": {"containment": "/cluster0"}}},
  {"id": "1", "metadata": {"type": "node", "rank": 0, "id": 0,
                           "paths": {"containment": "/cluster0/node0"}}},
  {"id": "7", "metadata": {"type": "gpu", "rank": 0, "id": 0,
                           "paths": {"containment": "/cluster0/node0/gpu0"}}}],
 "edges": [{"source": "0", "target": "1"}, {"source": "1", "target": "7"}]}})";
const char kR[] = R"({"version": 1, "execution": {"nodelist": ["n[0-1]"], "starttime": 0,
  "expiration": 0, "R_lite": [{"rank": "0-1", "children": {"core": "0-1"}}]}})";
const char kRankOne[] = R"({"version": 1, "execution": {"nodelist": ["node1"], "starttime": 0,
  "expiration": 60, "R_lite": [{"rank": "1", "children": {"core": "0-1"}}]}})";

std::string Cores(int nodes, int cores, int duration_s, const std::string& system = "") {
  return fmt::format(
      "version: 1\n"
      "resources:\n"
      "  - type: node\n"
      "    count: {}\n"
      "    with: [{{type: slot, count: 1, label: a, with: [{{type: core, count: {}}}]}}]\n"
      "tasks: []\n"
      "attributes: {{system: {{duration: {}{}}}}}\n",
      nodes,
      cores,
      duration_s,
      system);
}

absl::StatusOr<std::string> Read(const std::string& name) {
  static const auto* const kFiles = new std::map<std::string, std::string>{
      {"graph.json", kJgf},
      {"r.json", kR},
      {"gpu.json", kGpu},
      {"rank1.json", kRankOne},
      {"both.yaml", Cores(2, 2, 60)},
      {"one.yaml", Cores(1, 2, 0)},
      {"three.yaml", Cores(3, 1, 60)},
      {"ssd.yaml", Cores(1, 1, 30, ", constraints: {properties: [\"ssd\"]}")},
      {"bad.json", R"({"graph": {"nodes": [{"id": "0"}], "edges": []}})"},
      {"bad.yaml", "version: 1\nresources: []\n"},
      {"empty", ""},
  };
  const auto found = kFiles->find(name);
  if (found == kFiles->end()) return InvalidArgument("{}: cannot be read", name);
  return found->second;
}

struct Played {
  std::string output;
  int status = 0;
};

Played Play(const std::string& commands, MatchOptions options = {}, bool prompt = false) {
  if (options.graph.empty()) options.graph = "graph.json";
  options.policy = "low";
  absl::StatusOr<MatchShell> shell = MatchShell::Make(options, Read);
  EXPECT_TRUE(shell.ok()) << shell.status();
  std::istringstream in(commands);
  std::ostringstream out;
  const int status = shell->Run(in, out, prompt);
  return {"\n" + out.str(), status};
}

TEST(MatchShellTest, ASession) {
  const Played played = Play(R"(# Two nodes, then none.
match allocate both.yaml
match allocate ssd.yaml

match allocate_orelse_reserve ssd.yaml
explain one.yaml
info 3
partial-cancel 1 rank1.json
match allocate one.yaml
list
cancel 1
info 1
match without_allocating ssd.yaml
match satisfiability three.yaml
match satisfiability both.yaml
quit
match allocate both.yaml
)");
  EXPECT_EQ(played.output, R"(
both.yaml: allocated as job 1 until 60 s
cluster0
└─ node[0-1]
   └─ core[0-1]
ssd.yaml: busy; core: needs 1 on one node; the best node has 0 free
ssd.yaml: reserved as job 3 from 60 s until 90 s
cluster0
└─ node0
   └─ core0
one.yaml: core: needs 2 on one node; the best node has 0 free
  job 1 holds 2 of it until 60 s
job 3: reserved from 60 s until 90 s
cluster0
└─ node0
   └─ core0
job 1: allocated until 60 s
cluster0
└─ node0
   └─ core[0-1]
one.yaml: allocated as job 4
cluster0
└─ node1
   └─ core[0-1]
job 1: allocated until 60 s
job 3: reserved from 60 s until 90 s
job 4: allocated
job 1: cancelled
job 1: cancelled
ssd.yaml: fits until 30 s
cluster0
└─ node0
   └─ core0
three.yaml: unsatisfiable; node: needs 3, 2 would fit if all were up and free
both.yaml: satisfiable
)");
  EXPECT_EQ(played.status, 1);
}

// The same answers, found by Fluxion's library (ours with its interface).
TEST(MatchShellTest, ASessionOfTheEngineFluxion) {
  const std::string commands = R"(match allocate both.yaml
match allocate ssd.yaml
match allocate_orelse_reserve ssd.yaml
explain one.yaml
info 3
partial-cancel 1 rank1.json
match allocate one.yaml
list
cancel 1
cancel 1
match without_allocating ssd.yaml
match satisfiability three.yaml
match satisfiability both.yaml
match allocate bad.yaml
set-status /cluster0/node0 down
match allocate ssd.yaml
find status=down
)";
  const Played native = Play(commands);
  const Played fluxion = Play(commands, {.library = FLUXQUEUE_REAPI_LIBRARY});
  EXPECT_EQ(fluxion.status, native.status);
  // But for the text of what the library refuses.
  const auto without_errors = [](const std::string& output) {
    std::istringstream lines(output);
    std::string rest;
    for (std::string line; std::getline(lines, line);) {
      rest += (line.starts_with("error: ") ? "error" : line) + "\n";
    }
    return rest;
  };
  EXPECT_EQ(without_errors(fluxion.output), without_errors(native.output));
  const Played refused =
      Play("attach gpu.json\nremove /cluster0/node1\nset-property /cluster0 a=b\n",
           {.library = FLUXQUEUE_REAPI_LIBRARY});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.output, HasSubstr("attach: only the native engine can"));
  const auto missing = MatchShell::Make({.graph = "graph.json", .library = "/nowhere.so"}, Read);
  EXPECT_THAT(Message(missing.status()), HasSubstr("/nowhere.so"));
}

TEST(MatchShellTest, ResourcesAreFoundMarkedAttachedAndRemoved) {
  const Played played = Play(R"(set-status /cluster0/node0 down
get-status /cluster0/node1
find status=down
m allocate ssd.yaml
set-property /cluster0/node1 ssd=nvme
get-property /cluster0/node1
m allocate ssd.yaml
f property=ssd and status=up
f jobid-alloc=9
attach gpu.json
f names=gpu0
remove /cluster0/node0
find status=down
)");
  EXPECT_EQ(played.output, R"(
/cluster0/node0: down
/cluster0/node1: up
cluster0
└─ node0
   └─ core[0-1]
ssd.yaml: busy; node: 0 of 1 that may be used are up and not held
/cluster0/node1: ssd=nvme
/cluster0/node1: ssd=nvme
ssd.yaml: allocated as job 2 until 30 s
cluster0
└─ node1
   └─ core0
cluster0
└─ node1
nothing meets this
gpu.json: attached
cluster0
└─ node0
   └─ gpu0
/cluster0/node0: removed
nothing meets this
)");
}

TEST(MatchShellTest, WhatIsWrongIsSaidAndTheSessionGoesOn) {
  const Played played = Play(R"(mtach allocate one.yaml
match grab one.yaml
match allocate
match allocate missing.yaml
match allocate bad.yaml
cancel one
cancel 7
info 7
partial-cancel 7 rank1.json
find colour=red
set-status /cluster0/node0 sideways
set-status /cluster0/node9 up
set-property /cluster0/node0 ssd
get-property /cluster0/node9
attach bad.yaml
remove /cluster0/node9
)" + std::string("find names=\xff\nlist\nmatch allocate one.yaml"));
  EXPECT_EQ(played.output, R"(
error: unknown command "mtach"; known are match, explain, cancel, partial-cancel, info, list, find, set-status, get-status, set-property, get-property, attach, remove, help, quit
error: operation: must be one of allocate, allocate_with_satisfiability, allocate_orelse_reserve, satisfiability, without_allocating, without_allocating_future, is "grab"
error: match: wants "match OPERATION FILE"
error: missing.yaml: cannot be read
error: bad.yaml: resources: must be a list of at least one resource
error: ID: must be the number of a job, is "one"
error: job 7 holds nothing
error: there is no job 7
error: rank1.json: job 7 holds nothing
error: criteria: "colour" is unknown or empty; known are status, sched-now, sched-future, jobid-alloc, jobid-reserved, jobid-tag, jobid-span, names, property
error: set-status: must be up or down, is "sideways"
error: the graph has no path "/cluster0/node9"
error: set-property: must be KEY=VALUE, is "ssd"
error: the graph has no path "/cluster0/node9"
error: bad.yaml: JGF: is no JSON (byte 1): parse error at line 1, column 1: syntax error while parsing value - invalid literal; last read: 'v'
error: the graph has no path "/cluster0/node9"
error: a command must be UTF-8 text
one.yaml: allocated as job 2
cluster0
└─ node0
   └─ core[0-1]
)");
  EXPECT_EQ(played.status, 2);
}

TEST(MatchShellTest, AFormatInsteadOfDrawings) {
  EXPECT_EQ(Play("match allocate one.yaml", {.format = "rv1_nosched"}).output,
            "\n"
            R"({"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-1"}}],)"
            R"("nodelist":["node0"],"properties":{"ssd":"0"},"starttime":0,)"
            R"("expiration":3153600000}})"
            "\n");
  EXPECT_EQ(Play("match allocate one.yaml", {.format = "simple"}).output, R"(
      ---------core0[1:x]
      ---------core1[1:x]
      ------node0[1:s]
      ---cluster0[1:s]
)");
}

TEST(MatchShellTest, JsonIsAnObjectOnEachLine) {
  const Played played = Play(
      "match allocate both.yaml\nmatch allocate ssd.yaml\nmatch satisfiability ssd.yaml\n"
      "explain ssd.yaml\ncancel 1\nlist\nfind status=down\nget-property /cluster0/node0\n"
      "match\n# …\nquit\n",
      {.format = "rlite", .json = true});
  std::istringstream lines(played.output);
  std::string line;
  std::getline(lines, line);
  std::vector<json> answers;
  while (std::getline(lines, line)) answers.push_back(json::parse(line));
  EXPECT_THAT(
      answers,
      ElementsAre(
          json::parse(R"({"jobspec": "both.yaml", "job": 1, "outcome": "allocated", "at": 0,
              "until": 60, "resources": [{"rank": "0-1", "children": {"core": "0-1"}}]})"),
          json::parse(R"({"jobspec": "ssd.yaml", "outcome": "busy", "missing": "core",
              "reason": "core: needs 1 on one node; the best node has 0 free"})"),
          json::parse(R"({"jobspec": "ssd.yaml", "outcome": "satisfiable"})"),
          json::parse(R"({"jobspec": "ssd.yaml", "missing": "core",
              "reason": "core: needs 1 on one node; the best node has 0 free",
              "holders": [{"job": 1, "amount": 2, "until": 60}]})"),
          json::parse(R"({"job": 1, "outcome": "cancelled"})"),
          json::parse(R"({"jobs": [{"job": 1, "outcome": "cancelled"}]})"),
          json::parse(R"({"resources": null})"),
          json::parse(R"({"path": "/cluster0/node0", "properties": {"ssd": ""}})"),
          json::parse(
              R"({"command": "match", "error": "match: wants \"match OPERATION FILE\""})")));
  EXPECT_EQ(played.status, 2);
}

TEST(MatchShellTest, APromptOnlyForPeople) {
  EXPECT_EQ(Play("match satisfiability one.yaml\n", {}, true).output,
            "\nfluxqueue> one.yaml: satisfiable\nfluxqueue> \n");
  EXPECT_EQ(Play("q\n", {}, true).output, "\nfluxqueue> ");
  EXPECT_EQ(Play("", {}, true).status, 0);
}

TEST(MatchShellTest, HelpShowsEveryCommand) {
  EXPECT_THAT(Play("help").output,
              AllOf(StartsWith("\nmatch OPERATION FILE         m   find a place for a jobspec\n"),
                    HasSubstr("\nset-status PATH up|down      t   mark up or down\n"),
                    HasSubstr("OPERATION: allocate, allocate_with_satisfiability, ")));
}

TEST(MatchShellTest, RIsAGraphToo) {
  EXPECT_EQ(Play("match allocate one.yaml", {.graph = "r.json"}).output, R"(
one.yaml: allocated as job 1
cluster0
└─ n0
   └─ core[0-1]
)");
}

TEST(MatchShellTest, WhatCannotBegin) {
  const auto error = [](MatchOptions options) {
    return Message(MatchShell::Make(options, Read).status());
  };
  EXPECT_EQ(error({.graph = "missing.json"}), "missing.json: cannot be read");
  EXPECT_THAT(error({.graph = "bad.json"}),
              StartsWith("bad.json: graph.nodes[0].metadata: is miss"));
  for (const char* file : {"empty", "bad.yaml"}) {
    EXPECT_THAT(
        error({.graph = file}),
        StartsWith(std::string(file) + ": must be JGF (a JSON object with \"graph\") or R"));
  }
  EXPECT_THAT(error({.graph = "graph.json", .policy = "best"}),
              StartsWith("policy: \"best\" is neither one of first, firstnodex"));
  EXPECT_THAT(error({.graph = "graph.json", .format = "xml"}),
              StartsWith("match format: must be rv1, rv1_nosched, rlite, jgf or simple"));
}

}  // namespace
}  // namespace fluxqueue::cli
