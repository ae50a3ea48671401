// What may follow on a command line, from the tree of subcommands and options. Pure.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace fluxqueue::cli {

struct Word {
  std::string text;
  std::string help;
};

// One or several of these.
struct Completion {
  std::vector<Word> words{};
  std::string live{};  // names of the system: "JOB", "QUEUE", "NODE", "POOL"
  bool files = false;
};

// `words`: all behind the program's name; the last is the one to be completed, "" for a new one.
// The words returned begin with it.
Completion Complete(const CLI::App& app, const std::vector<std::string>& words);

// As shells and kubectl read it: "word<TAB>help" on lines, then ":0" where files may follow, ":4"
// where not.
std::string CompletionText(const Completion& completion);

// The line to be completed: all behind the word "__complete".
std::vector<std::string> BehindComplete(const std::vector<std::string>& arguments);

// For "bash", "zsh" or "fish": the script that asks `fluxqueue __complete`.
std::string CompletionScript(const std::string& shell);

}  // namespace fluxqueue::cli
