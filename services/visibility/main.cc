#include "libs/lifecycle/service_main.h"
#include "services/visibility/app.h"

int main(int argc, char** argv) {
  fluxqueue::visibility::VisibilityConfig config;
  return fluxqueue::lifecycle::ServiceMain(
      argc,
      argv,
      {.name = "visibility",
       .section = fluxqueue::visibility::Describe(&config),
       .make_app =
           [&config](const fluxqueue::lifecycle::AppContext& context) {
             return fluxqueue::visibility::MakeApp(context, config);
           },
       .stores = fluxqueue::config::Stores::kNone});
}
