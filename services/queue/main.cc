#include "libs/lifecycle/service_main.h"
#include "services/queue/app.h"

int main(int argc, char** argv) {
  fluxqueue::queue::QueueConfig config;
  return fluxqueue::lifecycle::ServiceMain(
      argc,
      argv,
      {.name = "queue",
       .section = fluxqueue::queue::Describe(&config),
       .make_app =
           [&config](const fluxqueue::lifecycle::AppContext& context) {
             return fluxqueue::queue::MakeApp(context, config);
           },
       .prepare = fluxqueue::queue::Prepare});
}
