#include "libs/lifecycle/service_main.h"
#include "services/cleanup/app.h"

int main(int argc, char** argv) {
  fluxqueue::cleanup::CleanupConfig config;
  return fluxqueue::lifecycle::ServiceMain(
      argc,
      argv,
      {.name = "cleanup",
       .section = fluxqueue::cleanup::Describe(&config),
       .make_app =
           [&config](const fluxqueue::lifecycle::AppContext& context) {
             return fluxqueue::cleanup::MakeApp(context, config);
           },
       .prepare = fluxqueue::cleanup::Prepare});
}
