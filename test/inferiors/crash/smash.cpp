// In a thread: throws and catches exceptions, then overruns a buffer and follows the function
// pointer that lies after it.
#include <cstring>
#include <stdexcept>
#include <thread>

struct Order {
  char customer[16];
  void (*finish)(Order&);
};

volatile int finished;
volatile int failures;

void finish_order(Order& /*order*/) {
  finished = finished + 1;
}

void check_name(const char* name) {
  if (std::strlen(name) > 12) throw std::length_error("name");
}

void note_failure() {
  failures = failures + 1;
}

void set_customer(Order& order, const char* name) {
  try {
    check_name(name);
  } catch (const std::length_error&) {
    note_failure();
  }
  for (std::size_t i = 0; i <= std::strlen(name); ++i) {
    order.customer[i] = name[i];  // smashes
  }
}

void run_order(Order& order) {
  order.finish(order);
}

void work(const char* name) {
  Order order{{}, finish_order};
  set_customer(order, "short");
  run_order(order);
  set_customer(order, name);
  run_order(order);
}

int main(int argc, char** argv) {
  // 22 characters leave an unmapped address; more characters leave a non-canonical one.
  const char* name = argc > 1 ? argv[1] : "a customer of a very l";
  std::thread thread{work, name};
  thread.join();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
