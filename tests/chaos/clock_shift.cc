// Preloaded into a program, it shifts the time of day by FLUXQUEUE_CLOCK_SHIFT seconds: what the
// program reads, and the moments until which it waits. What only measures (CLOCK_MONOTONIC) stays.
//
// It asks the kernel and no library: the services' allocator reads the clock before it can
// allocate.
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <unistd.h>

namespace {

// No machine has been up for so long: what is beyond is a time of day.
constexpr int64_t kLongestUptime = 1'000'000'000;

int64_t Shift() {
  static const int64_t shift = [] {
    const char* said = std::getenv("FLUXQUEUE_CLOCK_SHIFT");  // NOLINT(concurrency-mt-unsafe)
    return said == nullptr ? 0 : std::strtoll(said, nullptr, 10);
  }();
  return shift;
}

// For the kernel, of a moment that the program has worked out by the time that it has read.
timespec Real(timespec moment) {
  if (moment.tv_sec > kLongestUptime) moment.tv_sec -= Shift();
  return moment;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += Shift();
  }
  return result;
}

int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* into) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(timespec* time, int base) noexcept {
  return clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

// What C has for the same; it does not call the one below.
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  using Wait = int (*)(cnd_t*, mtx_t*, const timespec*);
  static const auto wait = reinterpret_cast<Wait>(dlsym(RTLD_NEXT, "cnd_timedwait"));
  const timespec moment = Real(*until);
  return wait(condition, mutex, &moment);
}

int pthread_cond_timedwait(pthread_cond_t* condition,
                           pthread_mutex_t* mutex,
                           const timespec* until) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  static const auto wait =
      reinterpret_cast<Wait>(dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"));
  const timespec moment = Real(*until);
  return wait(condition, mutex, &moment);
}
}
