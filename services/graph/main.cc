#include "libs/lifecycle/service_main.h"
#include "services/graph/app.h"

int main(int argc, char** argv) {
  fluxqueue::graph_service::GraphConfig config;
  return fluxqueue::lifecycle::ServiceMain(
      argc,
      argv,
      {.name = "graph",
       .section = fluxqueue::graph_service::Describe(&config),
       .make_app =
           [&config](const fluxqueue::lifecycle::AppContext& context) {
             return fluxqueue::graph_service::MakeApp(context, config);
           },
       .stores = fluxqueue::config::Stores::kPostgres});
}
