#include "tools/fluxqueue/release_text.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostNamed = 20;
constexpr const char* kPage = "deploy/docs/uninstall.md";

const char* Verb(const Released& one, bool really) {
  if (!one.error.empty()) return "could not be changed";
  switch (one.release.fate) {
    case Fate::kResume:
      return really ? "resumed" : "to be resumed";
    case Fate::kUngate:
      return really ? "its gate taken away" : "its gate to be taken away";
    case Fate::kUnmark:
      return really ? "runs on, its label taken off" : "runs on, its label to be taken off";
    case Fate::kKeep:
      return "kept as it is";
    case Fate::kScheduler:
      return "names our scheduler";
    case Fate::kComing:
      return "is under way, its pods to come are held";
  }
  return "";
}

// By namespace, kind and what becomes of them.
std::map<std::tuple<std::string, std::string, std::string>, size_t> Counts(
    const ReleaseReport& report) {
  std::map<std::tuple<std::string, std::string, std::string>, size_t> counts;
  for (const Released& one : report.all) {
    ++counts[{one.release.space, one.release.kind, Verb(one, report.really)}];
  }
  return counts;
}

using Choose = std::function<bool(const Released&)>;
using Say = std::function<std::string(const Released&)>;

std::string Lines(const ReleaseReport& report, bool all, const Choose& choose, const Say& say) {
  std::string text;
  size_t count = 0;
  for (const Released& one : report.all) {
    if (!choose(one)) continue;
    if (all || ++count <= kMostNamed) {
      const std::string more = say(one);
      text += fmt::format("  {}/{} ({}){}{}\n",
                          one.release.space,
                          one.release.name,
                          one.release.kind,
                          more.empty() ? "" : ": ",
                          more);
    }
  }
  if (count > kMostNamed) {
    text += fmt::format("  … and {} others: -o wide names all\n", count - kMostNamed);
  }
  return text;
}

Choose Is(Fate fate) {
  return [fate](const Released& one) { return one.release.fate == fate && one.error.empty(); };
}
std::string Why(const Released& one) {
  return one.release.why;
}

std::string KeptText(const ReleaseReport& report, bool all) {
  const std::string lines = Lines(report, all, Is(Fate::kKeep), Why);
  if (lines.empty()) return "";
  return "\nKept, as they are not ours to start:\n" + lines +
         "To start one:\n"
         "  kubectl patch job NAME -n NAMESPACE --type merge -p '{\"spec\": {\"suspend\": "
         "false}}'\n"
         "  kubectl patch pod NAME -n NAMESPACE --type merge -p '{\"spec\": {\"schedulingGates\": "
         "null}}'   (with all of its gates)\n";
}

std::string SchedulerText(const ReleaseReport& report, bool all) {
  const std::string lines = Lines(report, all, Is(Fate::kScheduler), [](const Released& one) {
    return one.release.owner.empty() ? "of no controller" : "of " + one.release.owner;
  });
  if (lines.empty()) return "";
  std::string text =
      "\nThese pods name the scheduler fluxqueue, which cannot be changed:\n" + lines +
      fmt::format(
          "Either have a kube-scheduler of that name place them ({}), or delete them: what a "
          "Deployment or the like makes in\ntheir place does not name it. Pods of Jobs, and "
          "those of no controller, need that scheduler, or to be made again.\n",
          kPage);
  const std::string held = Lines(
      report,
      all,
      [](const Released& one) { return Is(Fate::kScheduler)(one) && !one.release.why.empty(); },
      Why);
  if (held.empty()) return text;
  return text +
         "That scheduler would start these, which are not ours to start. Delete them before, or "
         "suspend their Jobs:\n" +
         held;
}

std::string ComingText(const ReleaseReport& report, bool all) {
  const auto with = [&report, all](bool scheduler) {
    return Lines(
        report,
        all,
        [scheduler](const Released& one) {
          const bool coming = Is(Fate::kComing)(one) || (scheduler && Is(Fate::kResume)(one));
          return coming && one.release.scheduler == scheduler;
        },
        [](const Released&) { return ""; });
  };
  std::string text;
  if (const std::string lines = with(true); !lines.empty()) {
    text += fmt::format(
        "\nThe pods that these Jobs make from now on name the scheduler fluxqueue, too: keep one "
        "of "
        "that name ({}) until they\nhave ended, or delete them and make them again:\n{}",
        kPage,
        lines);
  }
  if (const std::string lines = with(false); !lines.empty()) {
    text +=
        "\nThe pods that these Jobs make from now on have our gate. Run this again when there are "
        "some:\n" +
        lines;
  }
  return text;
}

std::string ObstaclesText(const ReleaseReport& report) {
  std::string text;
  for (const Obstacle& obstacle : report.in_the_way) {
    text += fmt::format("  {}\n  → {}\n", obstacle.what, obstacle.todo);
  }
  if (text.empty()) return "";
  return "In the way, so that nothing can be let go of yet:\n" + text + "\n";
}

}  // namespace

bool ReleaseReport::leaves() const {
  return !in_the_way.empty() || std::any_of(all.begin(), all.end(), [](const Released& one) {
    const Release& release = one.release;
    // The pods of a Job that was resumed may be yet to come.
    return !one.error.empty() || release.fate == Fate::kScheduler ||
           release.fate == Fate::kComing || (release.fate == Fate::kResume && release.scheduler);
  });
}

std::string Text(const ReleaseReport& report, bool all, bool colour) {
  std::string text = ObstaclesText(report);
  if (report.all.empty()) return text + "Fluxqueue holds nothing in this cluster\n";
  Table table({"NAMESPACE", "KIND", "COUNT", "WHAT"});
  for (const auto& [key, count] : Counts(report)) {
    const auto& [space, kind, what] = key;
    table.Add({space, kind, Thousands(count), what});
  }
  text += table.Render(colour);
  const std::string errors = Lines(
      report,
      all,
      [](const Released& one) { return !one.error.empty(); },
      [](const Released& one) { return one.error; });
  if (!errors.empty()) text += "\nCould not be changed; run this again:\n" + errors;
  text += KeptText(report, all) + SchedulerText(report, all) + ComingText(report, all);
  if (report.really) return text;
  return text + (report.in_the_way.empty()
                     ? "\nThis is a preview, nothing has been changed. --yes does it\n"
                     : "\nNothing has been changed\n");
}

json Json(const ReleaseReport& report) {
  json obstacles = json::array();
  for (const Obstacle& obstacle : report.in_the_way) {
    obstacles.push_back({{"what", obstacle.what}, {"todo", obstacle.todo}});
  }
  json objects = json::array();
  for (const Released& one : report.all) {
    const Release& release = one.release;
    objects.push_back({{"namespace", release.space},
                       {"kind", release.kind},
                       {"name", release.name},
                       {"fate", std::string(Name(release.fate))},
                       {"why", release.why},
                       {"owner", release.owner},
                       {"podsNameScheduler", release.scheduler},
                       {"error", one.error}});
  }
  return {
      {"done", report.really}, {"inTheWay", std::move(obstacles)}, {"objects", std::move(objects)}};
}

}  // namespace fluxqueue::cli
