#include "libs/lifecycle/service_main.h"
#include "services/admission/app.h"

int main(int argc, char** argv) {
  fluxqueue::admission::AdmissionConfig config;
  return fluxqueue::lifecycle::ServiceMain(
      argc,
      argv,
      {.name = "admission",
       .section = fluxqueue::admission::Describe(&config),
       .make_app =
           [&config](const fluxqueue::lifecycle::AppContext& context) {
             return fluxqueue::admission::MakeApp(context, config);
           },
       .prepare = fluxqueue::admission::Prepare});
}
