// Asks that no core be kept of it, and dies.

#include <stddef.h>
#include <sys/prctl.h>

int main(void) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return *(volatile int*)NULL;
}
