// support-bundle: what others need to see to help.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/client.h"

#include "tools/fluxqueue/archive.h"
#include "tools/fluxqueue/cluster_http.h"
#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/structured_text.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostRows = 10'000;
constexpr size_t kLogBytes = size_t{512} * 1024;
constexpr int kLogLines = 5'000;
constexpr kubernetes::Resource kConfigMaps{"", "v1", "configmaps", true};
// Of our ConfigMaps those that are no dashboards.
constexpr const char* kConfigurations =
    "app.kubernetes.io/name=fluxqueue,app.kubernetes.io/component!=metrics";

constexpr const char* kAbout =
    "What `fluxqueue support-bundle` has collected. Passwords and tokens are taken out; Secrets "
    "are not read.\n\n"
    "commands/   what the program's own commands say: doctor, verify, jobs, queues, nodes, "
    "dead-letters\n"
    "events.jsonl  the logs of the last hour, an event on a line\n"
    "tables/     the services' tables, 10,000 rows of each, without columns of bytes\n"
    "cluster/    FluxQueues, FluxWindows, FluxJobs, nodes, the webhook; of our namespace its pods "
    "and ConfigMaps\n"
    "logs/       the ends of the services' logs, where they can be reached\n"
    "config/     the configuration of this program, and of services beside it\n\n";

// Where the output goes, and what could not be had.
class Bundle {
 public:
  Bundle(const Context& context, SystemConfig config)
      : context_(context),
        config_(std::move(config)),
        name_(fmt::format("fluxqueue-{:%Y%m%d-%H%M%S}",
                          fmt::localtime(context.Now().count() / 1000))),
        archive_(name_, context.Now()) {}

  std::string Collect() {
    for (const auto& [file, arguments] :
         std::initializer_list<std::pair<const char*, std::vector<std::string>>>{
             {"commands/doctor.txt", {"doctor"}},
             {"commands/verify.txt", {"verify", "--no-replay"}},
             {"commands/jobs.txt", {"jobs", "--all", "-o", "wide"}},
             {"commands/queues.txt", {"queues", "-o", "wide"}},
             {"commands/nodes.txt", {"nodes", "-o", "wide"}},
             {"commands/dead-letters.txt", {"dead-letters", "list", "--all"}},
             {"events.jsonl", {"events", "--since", "1h", "-o", "json"}}}) {
      Add(file, Say(arguments));
    }
    AddTables();
    AddCluster();
    AddFiles();
    archive_.Add("README.txt", kAbout + missing_);
    return archive_.Pack();
  }

  const std::string& name() const { return name_; }

 private:
  void Add(const std::string& file, const absl::StatusOr<std::string>& text) {
    if (text.ok()) {
      archive_.Add(file, Redacted(*text));
    } else {
      missing_ += fmt::format("missing: {}: {}\n", file, Message(text.status()));
    }
  }

  // What this program prints for the arguments, both streams.
  absl::StatusOr<std::string> Say(const std::vector<std::string>& arguments) const {
    std::array<int, 2> out{};
    if (pipe2(out.data(), O_CLOEXEC) != 0) return Unavailable("pipe: {}", strerrordesc_np(errno));
    std::vector<std::string> all = {"fluxqueue", "--config", config_.file, "--colour=never"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(all.size() + 1);
    for (std::string& argument : all) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const pid_t child = fork();
    if (child < 0) return Unavailable("fork: {}", strerrordesc_np(errno));
    if (child == 0) {
      dup2(out[1], STDOUT_FILENO);
      dup2(out[1], STDERR_FILENO);
      execv("/proc/self/exe", pointers.data());
      _exit(127);
    }
    close(out[1]);
    std::string text;
    std::array<char, 65536> buffer{};
    for (ssize_t n = 0; (n = read(out[0], buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<size_t>(n));
    }
    close(out[0]);
    waitpid(child, nullptr, 0);
    return text;
  }

  void AddTables() {
    postgres::Connection connection(PostgresOptions(config_.dsn));
    const absl::Status status = connection.Query([&](pqxx::transaction_base& tx) {
      // Each table with its columns, but for those of bytes.
      const pqxx::result tables = tx.exec(
          "SELECT table_schema || '.' || table_name, string_agg(quote_ident(column_name), ', ' "
          "ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema IN "
          "('admission', 'queue', 'matcher', 'binder', 'cleanup') AND data_type <> 'bytea' GROUP "
          "BY 1 ORDER BY 1");
      for (const pqxx::row& table : tables) {
        const auto name = table[0].as<std::string>();
        const pqxx::result rows = tx.exec(
            fmt::format("SELECT {} FROM {} LIMIT {}", table[1].as<std::string>(), name, kMostRows));
        Add(fmt::format("tables/{}.csv", name), Csv(rows));
      }
      return absl::OkStatus();
    });
    if (!status.ok()) Add("tables", status);
  }

  static std::string Csv(const pqxx::result& rows) {
    std::string text;
    for (pqxx::row::size_type i = 0; i < rows.columns(); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ",", rows.column_name(i));
    }
    text += '\n';
    for (const pqxx::row& row : rows) {
      for (const pqxx::field& field : row) {
        if (field.num() > 0) text += ',';
        text += CsvField(field.is_null() ? "" : field.c_str());
      }
      text += '\n';
    }
    return text;
  }

  static std::string CsvField(const std::string& value) {
    if (value.find_first_of(",\"\n") == std::string::npos) return value;
    std::string quoted = "\"";
    for (const char c : value) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
  }

  void AddCluster() {
    if (!config_.has_cluster) return Add("cluster", InvalidArgument("no cluster is known here"));
    auto cluster = kubernetes::LoadClusterConfig(config_.kubeconfig);
    if (!cluster.ok()) return Add("cluster", cluster.status());
    kubernetes::Client client(*cluster);
    constexpr kubernetes::Resource kWebhooks{
        "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", false};
    for (const kubernetes::Resource& resource : {kubernetes::kFluxQueues,
                                                 kubernetes::kFluxWindows,
                                                 kubernetes::kFluxJobs,
                                                 kubernetes::kNodes,
                                                 kWebhooks}) {
      AddObjects(client, resource, {});
    }
    const std::string& system = context_.cluster.space;
    AddObjects(client, kConfigMaps, {.space = system, .labels = kConfigurations});
    const std::vector<std::string> pods = AddObjects(client, kubernetes::kPods, {.space = system});
    const auto http = MakeClusterHttp(*cluster);
    for (const std::string& pod : pods) {
      const auto log =
          http->Do({.target = fmt::format(
                        "/api/v1/namespaces/{}/pods/{}/log?tailLines={}", system, pod, kLogLines)});
      const bool good = log.ok() && log->status == 200;
      Add(fmt::format("logs/{}.log", pod),
          good       ? absl::StatusOr<std::string>(log->body)
          : log.ok() ? Unavailable("the API server answers {}", log->status)
                     : log.status());
    }
  }

  // Returns their names.
  std::vector<std::string> AddObjects(kubernetes::Client& client,
                                      const kubernetes::Resource& resource,
                                      const kubernetes::Selector& options) {
    json objects = json::array();
    std::vector<std::string> names;
    const absl::Status status = client
                                    .List(resource,
                                          options,
                                          [&](std::string_view text) {
                                            json object = json::parse(text);
                                            names.push_back(object["metadata"]["name"]);
                                            object["metadata"].erase("managedFields");
                                            objects.push_back(std::move(object));
                                            return absl::OkStatus();
                                          })
                                    .status();
    const std::string file = fmt::format("cluster/{}.yaml", std::string(resource.plural));
    Add(file, status.ok() ? absl::StatusOr<std::string>(YamlText(objects)) : status);
    return names;
  }

  // Of tools/up: configurations and logs stand beside the file that names the system.
  void AddFiles() {
    const std::filesystem::path folder = std::filesystem::path(config_.file).parent_path();
    Add("config/fluxqueue.yaml", End(config_.file));
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator(folder / "config", ignored)) {
      if (file.path().extension() != ".yaml") continue;
      Add("config/" + file.path().filename().string(), End(file.path()));
    }
    for (const auto& file : std::filesystem::directory_iterator(folder / "logs", ignored)) {
      if (file.path().extension() != ".log") continue;
      Add("logs/" + file.path().filename().string(), End(file.path()));
    }
  }

  static std::string End(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    const std::string whole = text.str();
    return whole.size() > kLogBytes ? whole.substr(whole.size() - kLogBytes) : whole;
  }

  const Context& context_;
  const SystemConfig config_;
  const std::string name_;
  Archive archive_;
  std::string missing_;
};

absl::StatusOr<int> Run(const Context& context, std::string file) {
  if (file.empty()) {
    file = fmt::format("fluxqueue-{:%Y%m%d-%H%M%S}.tar.gz",
                       fmt::localtime(context.Now().count() / 1000));
  }
  ASSIGN_OR_RETURN(SystemConfig config, context.LoadConfig(file, Needs::kNothing));
  Bundle bundle(context, std::move(config));
  const std::string packed = bundle.Collect();
  std::ofstream out(file == "-" ? "/dev/stdout" : file, std::ios::binary | std::ios::trunc);
  out << packed;
  out.close();
  if (!out) return InvalidArgument("{}: cannot be written", file);
  fmt::print(stderr, "{}: {} bytes; README.txt in it says what it contains\n", file, packed.size());
  return 0;
}

}  // namespace

void RegisterSupportBundle(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("support-bundle", "Collect what others need to see to help");
  sub->group("Operation");
  const auto file = std::make_shared<std::string>();
  sub->add_option("FILE", *file, "A tar.gz; -: standard output; default: named by the time")
      ->type_name("FILE");
  sub->footer(
      "The output of doctor, verify and the lists, the logs of the last hour, the tables, the "
      "cluster's objects, the\nservices' logs and configurations. Passwords and tokens are taken "
      "out; names of users, jobs and nodes are in\nit. What could not be had is named in its "
      "README.txt.\n\n"
      "Examples:\n"
      "  fluxqueue support-bundle\n"
      "  fluxqueue support-bundle - | tar -tz");
  sub->callback(
      [&context, file] { context.command = [&context, file] { return Run(context, *file); }; });
}

}  // namespace fluxqueue::cli
