// fluxqueue-fluxion-host: what child_context.h starts, with its end of the socket pair as standard
// input. Not for people.
#include <csignal>
#include <cstdio>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libs/fluxion/host.h"

int main() {
  int type = 0;
  socklen_t length = sizeof(type);
  if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &length) != 0) {
    std::fputs("fluxqueue-fluxion-host is started by fluxqueue-matcher, not by people\n", stderr);
    return 2;
  }
  // Also when a call hangs: the one who started it may be killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  fluxqueue::fluxion::Channel channel(dup(STDIN_FILENO));
  fluxqueue::fluxion::Serve(&channel);
  return 0;
}
