// Looks for a missing order, through templates, while other threads wait.
// usage: orders THREADS
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct Order {
  int number = 0;
};

template <class Key, class Value>
struct Shelf {
  std::map<Key, Value> items;

  const Value* find(const Key& key) const {
    const auto found = items.find(key);
    return found == items.end() ? nullptr : &found->second;
  }
};

using Orders = Shelf<std::string, Order>;

int number_of(const Order* order) {
  return order->number;
}

int sum(const Orders& orders, int count) {
  int total = 0;
  for (int i = 0; i < count; ++i) {
    const Order* order = orders.find("order " + std::to_string(i));
    total += number_of(order);
  }
  return total;
}

std::mutex lock;
std::condition_variable changed;
int waiting = 0;
bool done = false;

void wait_until_done() {
  std::unique_lock<std::mutex> hold{lock};
  ++waiting;
  changed.notify_all();
  while (!done) changed.wait(hold);
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  std::vector<std::thread> all(static_cast<std::size_t>(threads));
  for (std::thread& thread : all) thread = std::thread{wait_until_done};
  {
    std::unique_lock<std::mutex> hold{lock};
    while (waiting < threads) changed.wait(hold);
  }
  Orders orders;
  for (int i = 0; i < 8; ++i) orders.items["order " + std::to_string(i)].number = i;
  return sum(orders, 9);
}

// SPDX-License-Identifier: Apache-2.0
