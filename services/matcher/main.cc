#include "libs/lifecycle/service_main.h"
#include "services/matcher/app.h"

int main(int argc, char** argv) {
  fluxqueue::matcher::MatcherConfig config;
  return fluxqueue::lifecycle::ServiceMain(
      argc,
      argv,
      {.name = "matcher",
       .section = fluxqueue::matcher::Describe(&config),
       .make_app =
           [&config](const fluxqueue::lifecycle::AppContext& context) {
             return fluxqueue::matcher::MakeApp(context, config);
           },
       .prepare = fluxqueue::matcher::Prepare});
}
