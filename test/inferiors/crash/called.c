// SPDX-License-Identifier: Apache-2.0
/* Makes calls and dies of a null pointer. With the argument "say" it prints each call's arguments
 * and results instead: FUNCTION VARIABLE VALUE, in the order of the calls; results as FUNCTION =
 * VALUE. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum mode { OFF, ON = 3 };
struct pair {
  short low;
  long high;
};

static volatile int verbose;
static volatile int taken;
static int* volatile nowhere;

#define SAY(...)                      \
  do {                                \
    if (verbose) printf(__VA_ARGS__); \
  } while (0)
#define OWN __attribute__((noinline, noclone))

OWN unsigned mix(unsigned char a, unsigned b) {
  SAY("mix a %d '%c'\nmix b %u\n", a, a, b);
  unsigned result = b * 2 + a;
  SAY("mix = %u\n", result);
  return result;
}

OWN double half(double number, float factor) {
  SAY("half number %g\nhalf factor %g\n", number, (double)factor);
  double result = number / 2 * (double)factor;
  taken += (int)result;
  return result;
}

OWN const char* pick(enum mode mode, _Bool upper) {
  SAY("pick mode %s\npick upper %s\n", mode == ON ? "ON" : "OFF", upper ? "true" : "false");
  const char* result = upper ? "UPPER" : "lower";
  SAY("pick = * \"%s\"\n", result);
  return result;
}

OWN long add(struct pair pair, long more) {
  SAY("add pair {low=%d, high=%ld}\nadd more %ld\n", pair.low, pair.high, more);
  more += pair.low;
  pair.low = 0;
  long result = more + pair.high;
  SAY("add = %ld\n", result);
  return result;
}

OWN int down(int level, const char* word) {
  SAY("down level %d\ndown word * \"%s\"\n", level, word);
  int result = level == 0 ? taken : down(level - 1, word + 1) + level;
  SAY("down = %d\n", result);
  return result;
}

OWN void ignore(int one, int two, int three, int four, int five, int six, int seven, long eight) {
  SAY("ignore one %d\nignore seven %d\nignore eight %ld\n", one, seven, eight);
  taken += one + two + three + four + five + six + seven + (int)eight;
}

static void handle(int signal) {
  SAY("handle signal %d\n", signal);
  taken += signal;
}

OWN int last(int count, int* place) {
  SAY("last count %d\n", count);
  ++count;
  return *place + count;
}

int main(int argc, char** argv) {
  static int here;
  (void)argv;
  verbose = argc > 1;
  signal(SIGUSR1, handle);
  raise(SIGUSR1);
  taken += (int)mix('x', 100);
  taken += (int)half(5, 0.5f);
  taken += pick(ON, 1)[0] + pick(OFF, 0)[0];
  struct pair pair = {-3, 1L << 40};
  taken += (int)add(pair, 8);
  taken += down(3, "abcdef");
  ignore(1, 2, 3, 4, 5, 6, 7, -8);
  return last(taken & 7, argc > 1 ? &here : nowhere);
}
