// A shop whose stock grows without a delivery. Which call adds the goods?
#include <cstdio>

constexpr int kCapacity = 3;
int stock = kCapacity;

bool reserve(int pieces) {
  if (pieces > stock) return false;
  stock -= pieces;
  return true;
}

bool charge(int cents) {
  return cents <= 9000;
}

void put_back(int pieces) {
  stock += pieces;
}

void order(int pieces, int cents) {
  reserve(pieces);
  if (!charge(cents)) {
    put_back(pieces);
  }
}

void check_shelf() {
  if (stock > kCapacity) __builtin_trap();
}

int main() {
  order(1, 2500);
  order(1, 9900);
  order(1, 5000);
  order(3, 9500);
  check_shelf();
  std::puts("all is well");
}

// SPDX-License-Identifier: Apache-2.0
