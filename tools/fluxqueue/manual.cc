#include "tools/fluxqueue/manual.h"

#include <string_view>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

constexpr std::string_view kProgram = "fluxqueue";
constexpr std::string_view kExamples = "Examples:\n";
constexpr std::string_view kEllipsis = "…";

// Text for troff: no line begins with a control character, and dashes stay dashes.
std::string Escaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || text[i - 1] == '\n';
    if (begins && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\') {
      out += "\\e";
    } else if (text[i] == '-') {
      out += "\\-";
    } else if (text[i] == '\'') {
      out += "\\(aq";
    } else if (text.substr(i).starts_with(kEllipsis)) {
      out += "\\&...";
      i += kEllipsis.size() - 1;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool IsShown(const CLI::Option& option) {
  return !option.get_group().empty();
}

// "QUEUE" of "QUEUE:allowed values".
std::string TypeOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string Usage(const CLI::App& sub, const std::string& name) {
  std::string text = fmt::format("\\fB{} {}\\fR", kProgram, Escaped(name));
  for (const CLI::Option* option : sub.get_options()) {
    if (!option->get_positional()) continue;
    const bool optional = !option->get_required();
    text += fmt::format(" {}\\fI{}\\fR{}{}",
                        optional ? "[" : "",
                        Escaped(option->get_name()),
                        option->get_expected_max() > 1 ? "\\&..." : "",
                        optional ? "]" : "");
  }
  return text + " [\\fIoptions\\fR]\n";
}

std::string OptionsText(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (!IsShown(*option)) continue;
    const bool takes_value = option->get_type_size() != 0 && !option->get_positional();
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n",
                        Escaped(option->get_name(/*positional=*/false, /*all_options=*/true)),
                        takes_value ? fmt::format(" \\fI{}\\fR", Escaped(TypeOf(*option))) : "",
                        Escaped(option->get_description()));
  }
  return text;
}

// Paragraphs are filled; examples stay as they are.
std::string FooterText(const std::string& footer) {
  const size_t examples = footer.find(kExamples);
  std::string text;
  if (const std::string prose = footer.substr(0, examples); !prose.empty()) {
    text += fmt::format(".PP\n{}\n", Escaped(prose.substr(0, prose.find_last_not_of('\n') + 1)));
  }
  if (examples != std::string::npos) {
    text += fmt::format(".PP\nExamples:\n.PP\n.nf\n{}\n.fi\n",
                        Escaped(footer.substr(examples + kExamples.size())));
  }
  return text;
}

void AddCommands(const CLI::App& app, const std::string& before, std::string* page) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;
    const std::string name = before + sub->get_name();
    *page += fmt::format(".SS {}\n{}.PP\n{}\n{}{}",
                         Escaped(name),
                         Usage(*sub, name),
                         Escaped(sub->get_description()),
                         OptionsText(*sub),
                         FooterText(sub->get_footer()));
    AddCommands(*sub, name + " ", page);
  }
}

}  // namespace

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_positional() || option->get_type_size() == 0) return "";
  std::string text = " " + TypeOf(*option);
  if (!option->get_default_str().empty()) text += " (" + option->get_default_str() + ")";
  return option->get_required() ? text + ", required" : text;
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::string text = app->get_footer();
  if (!text.empty()) text += "\n";
  if (const CLI::App* parent = app->get_parent(); parent != nullptr) {
    text += fmt::format(
        "{}Options of every command: {} --help\n", text.empty() ? "" : "\n", parent->get_name());
  }
  return text;
}

absl::StatusOr<const CLI::App*> FindCommand(const CLI::App& app,
                                            const std::vector<std::string>& path) {
  const CLI::App* at = &app;
  std::string name = app.get_name();
  for (const std::string& word : path) {
    std::vector<std::string> known;
    const CLI::App* found = nullptr;
    for (const CLI::App* sub : at->get_subcommands([](const CLI::App*) { return true; })) {
      if (!sub->get_group().empty()) known.push_back(sub->get_name());
      if (sub->check_name(word)) found = sub;
    }
    if (found == nullptr) {
      const std::vector<std::string> near = NearMatches(word, known, 1);
      return InvalidArgument("there is no command {} {}; {}",
                             name,
                             word,
                             near.empty() ? fmt::format("{} --help lists them", name)
                                          : fmt::format("did you mean {}?", near[0]));
    }
    at = found;
    name += " " + word;
  }
  return at;
}

std::string ManualPage(const CLI::App& app) {
  std::string page = fmt::format(
      ".TH FLUXQUEUE 1\n.SH NAME\n{0} \\- {1}\n.SH SYNOPSIS\n\\fB{0}\\fR \\fIcommand\\fR "
      "[\\fIoptions\\fR]\n.br\n\\fBkubectl {0}\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n"
      ".SH DESCRIPTION\n{2}\n.SH OPTIONS OF EVERY COMMAND\n{3}.SH COMMANDS\n",
      kProgram,
      Escaped(app.get_description()),
      Escaped(app.get_footer()),
      OptionsText(app));
  AddCommands(app, "", &page);
  return page +
         ".SH EXIT STATUS\n0: fine; 1: what was looked for is wrong (verify, replay, doctor, "
         "\\&...); 2: the command could not do its work, and said why.\n";
}

}  // namespace fluxqueue::cli
