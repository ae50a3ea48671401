#include "tools/fluxqueue/completion.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace fluxqueue::cli {
namespace {

bool IsShown(const CLI::Option& option) {
  return !option.get_group().empty();
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return IsShown(*option); });
}

// A subcommand's own, then those of every command.
const CLI::Option* Find(const CLI::App& app, const std::string& name) {
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    if (const CLI::Option* option = at->get_option_no_throw(name); option != nullptr) return option;
  }
  return nullptr;
}

bool TakesValue(const CLI::Option* option) {
  return option != nullptr && option->get_type_size() != 0;
}

// A subcommand, or nothing.
const CLI::App* Subcommand(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&name](const CLI::App* sub) { return sub->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

class Completer {
 public:
  explicit Completer(const CLI::App& app) : at_(&app) {}

  void Pass(const std::string& word) {
    if (value_of_ != nullptr) {
      value_of_ = nullptr;
    } else if (word.size() > 1 && word[0] == '-') {
      const CLI::Option* option = Find(*at_, word);
      if (TakesValue(option)) value_of_ = option;
    } else if (const CLI::App* sub = Subcommand(*at_, word); sub != nullptr) {
      at_ = sub;
      positional_ = 0;
    } else {
      ++positional_;
    }
  }

  Completion Finish(const std::string& word) && {
    word_ = word;
    if (value_of_ != nullptr) {
      AddValues(*value_of_, "");
    } else if (const size_t equals = word.find('='); word[0] == '-' && equals != word.npos) {
      const CLI::Option* option = Find(*at_, word.substr(0, equals));
      if (TakesValue(option)) AddValues(*option, word.substr(0, equals + 1));
    } else if (word[0] == '-') {
      AddOptions();
    } else {
      AddSubcommands();
      AddPositional();
    }
    return std::move(result_);
  }

 private:
  void Add(const std::string& text, const std::string& help) {
    if (text.starts_with(word_)) result_.words.push_back({text, help});
  }

  void AddOptions() {
    for (const CLI::App* at = at_; at != nullptr; at = at->get_parent()) {
      for (const CLI::Option* option : OptionsOf(*at)) {
        for (const std::string& name : option->get_lnames()) {
          Add("--" + name, option->get_description());
        }
      }
    }
  }

  void AddSubcommands() {
    const auto shown = [](const CLI::App* sub) { return !sub->get_group().empty(); };
    for (const CLI::App* sub : at_->get_subcommands(shown)) {
      Add(sub->get_name(), sub->get_description());
    }
  }

  void AddPositional() {
    const auto options =
        at_->get_options([](const CLI::Option* option) { return option->get_positional(); });
    if (options.empty()) return;
    if (positional_ < options.size()) {
      AddValues(*options[positional_], "");
    } else if (options.back()->get_expected_max() > 1) {
      AddValues(*options.back(), "");
    }
  }

  void AddValues(const CLI::Option& option, const std::string& before) {
    std::string type = option.get_type_name();
    type = type.substr(0, type.find(':'));
    if (type == "FILE") result_.files = true;
    if (type == "JOB" || type == "QUEUE" || type == "NODE" || type == "POOL") result_.live = type;
    if (type.find('|') == std::string::npos) return;
    for (size_t begin = 0; begin <= type.size();) {
      const size_t end = std::min(type.find('|', begin), type.size());
      Add(before + type.substr(begin, end - begin), "");
      begin = end + 1;
    }
  }

  const CLI::App* at_;
  const CLI::Option* value_of_ = nullptr;
  size_t positional_ = 0;
  std::string word_;
  Completion result_;
};

constexpr const char* kBash =
    R"(# fluxqueue completion for bash: source <(fluxqueue completion bash)
_fluxqueue() {
  local line words=() answer
  for line in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    [[ $line == '=' ]] || words+=("$line")
  done
  [[ ${COMP_WORDS[COMP_CWORD]} != '=' ]] || words+=('')
  mapfile -t answer < <(fluxqueue __complete "${words[@]}" 2>/dev/null)
  COMPREPLY=()
  for line in "${answer[@]}"; do
    case $line in
      :0) compopt -o default ;;
      :*) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done
}
complete -F _fluxqueue fluxqueue
)";

constexpr const char* kZsh = R"(#compdef fluxqueue
# fluxqueue completion for zsh: source <(fluxqueue completion zsh)
_fluxqueue() {
  local -a answer found
  local line
  answer=("${(@f)$(fluxqueue __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $answer; do
    [[ $line == :* ]] || found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  (( ! $#found )) || _describe fluxqueue found
  [[ $answer[-1] != :0 ]] || _files
}
# As a file of $fpath it is the function, called for the first time.
if [[ $funcstack[1] == _fluxqueue ]]; then _fluxqueue "$@"; else compdef _fluxqueue fluxqueue; fi
)";

constexpr const char* kFish = R"(# fluxqueue completion for fish: fluxqueue completion fish | source
function __fluxqueue_complete
    set -l answer (fluxqueue __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    string match -v -r '^:' -- $answer
    test "$answer[-1]" != :0; or __fish_complete_path (commandline -ct)
end
complete -c fluxqueue -f -a '(__fluxqueue_complete)'
)";

}  // namespace

Completion Complete(const CLI::App& app, const std::vector<std::string>& words) {
  Completer completer(app);
  for (size_t i = 0; i + 1 < words.size(); ++i) completer.Pass(words[i]);
  return std::move(completer).Finish(words.empty() ? "" : words.back());
}

std::string CompletionText(const Completion& completion) {
  std::string text;
  for (const Word& word : completion.words) text += fmt::format("{}\t{}\n", word.text, word.help);
  return text + (completion.files ? ":0\n" : ":4\n");
}

std::vector<std::string> BehindComplete(const std::vector<std::string>& arguments) {
  const auto asked = std::find(arguments.begin(), arguments.end(), "__complete");
  if (asked == arguments.end()) return {};
  return {asked + 1, arguments.end()};
}

std::string CompletionScript(const std::string& shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
}

}  // namespace fluxqueue::cli
