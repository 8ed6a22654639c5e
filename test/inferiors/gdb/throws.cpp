// A C++ exception that passes frames with destructors.
#include <cstdio>
#include <stdexcept>

volatile int destroyed;
volatile int caught;

struct Guard {
  ~Guard() { destroyed = destroyed + 1; }
};

void thrower(int levels) {
  Guard guard;
  if (levels == 0) throw std::runtime_error("deep");
  thrower(levels - 1);
}

void handled() {
  caught = caught + 1;
}

int catcher() {
  try {
    thrower(2);
  } catch (const std::runtime_error&) {
    handled();
    return 1;
  }
  return 0;
}

void finished() {}

int main() {
  int result = catcher();
  finished();
  std::printf("caught %d destroyed %d result %d\n", caught, destroyed, result);
  std::fflush(stdout);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
