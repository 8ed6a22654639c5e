/* Works, waits, works, dies. */
#include <time.h>

static volatile long sum;

static __attribute__((noinline)) void work(void) {
  for (long i = 0; i < 2000; ++i) {
    sum += i;
    if ((sum & 64) != 0) sum ^= 3;
  }
}

static __attribute__((noinline)) void wait_long(void) {
  const struct timespec time = {0, 400000000};
  nanosleep(&time, 0);
}

int main(void) {
  work();
  wait_long();
  work();
  *(volatile int*)0 = 1;
  return 0;
}
