#include "libs/fluxion/host.h"

#include <memory>
#include <string>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/fluxion/context.h"

namespace fluxqueue::fluxion {
namespace {

using nlohmann::json;

class Host {
 public:
  json Answer(const json& request) {
    json answer = json::object();
    absl::Status status;
    try {
      status = Call(request, &answer);
    } catch (const json::exception& error) {
      status = InvalidArgument("a request of another form: {}", error.what());
    }
    answer["code"] = static_cast<int>(status.code());
    answer["message"] = Message(status);
    return answer;
  }

 private:
  absl::Status Call(const json& request, json* answer) {
    const std::string call = request.at("call");
    if (call == "open") return Open(request);
    if (context_ == nullptr) return InvalidArgument("{}: nothing is open", call);
    if (call == "match") {
      ASSIGN_OR_RETURN(Context::Placed placed,
                       context_->Match(request.at("operation").get<graph::MatchOperation>(),
                                       request.at("jobspec"),
                                       request.at("job")));
      (*answer)["reserved"] = placed.reserved;
      (*answer)["at_s"] = placed.at_s;
      (*answer)["resources"] = std::move(placed.resources);
      return absl::OkStatus();
    }
    if (call == "restore") return context_->Restore(request.at("job"), request.at("resources"));
    if (call == "cancel") return context_->Cancel(request.at("job"));
    if (call == "cancel_part") {
      return context_->CancelPart(request.at("job"), request.at("resources"));
    }
    if (call == "find") {
      ASSIGN_OR_RETURN((*answer)["found"], context_->Find(request.at("criteria")));
      return absl::OkStatus();
    }
    if (call == "set_up") return context_->SetUp(request.at("path"), request.at("up"));
    return InvalidArgument("unknown call \"{}\"", call);
  }

  absl::Status Open(const json& request) {
    ASSIGN_OR_RETURN(auto library, Library::Open(request.at("library")));
    ASSIGN_OR_RETURN(context_,
                     MakeContext(std::move(library),
                                 request.at("graph"),
                                 {.policy = request.at("policy"),
                                  .traverser = request.at("traverser"),
                                  .prune_filters = request.at("prune_filters")}));
    return absl::OkStatus();
  }

  std::unique_ptr<Context> context_;
};

}  // namespace

void Serve(Channel* channel) {
  Host host;
  while (true) {
    const absl::StatusOr<json> request = channel->Receive(Millis(0));
    if (!request.ok() || !channel->Send(host.Answer(*request), Millis(0)).ok()) return;
  }
}

}  // namespace fluxqueue::fluxion
