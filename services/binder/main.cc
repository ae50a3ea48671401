#include "libs/lifecycle/service_main.h"
#include "services/binder/app.h"

int main(int argc, char** argv) {
  fluxqueue::binder::BinderConfig config;
  return fluxqueue::lifecycle::ServiceMain(
      argc,
      argv,
      {.name = "binder",
       .section = fluxqueue::binder::Describe(&config),
       .make_app =
           [&config](const fluxqueue::lifecycle::AppContext& context) {
             return fluxqueue::binder::MakeApp(context, config);
           },
       .prepare = fluxqueue::binder::Prepare});
}
