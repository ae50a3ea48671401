#include "libs/lifecycle/service_main.h"
#include "services/matcher/app.h"

int main(int argc, char** argv) {
  return fluxqueue::lifecycle::ServiceMain(
      argc, argv, {.name = "matcher", .section = {}, .make_app = fluxqueue::matcher::MakeApp});
}
