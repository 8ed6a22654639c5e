// Exceptions, virtual calls, strings and containers.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "begin.h"

namespace {

struct Shape {
  virtual ~Shape() = default;
  [[nodiscard]] virtual int area() const = 0;
};
struct Square : Shape {
  explicit Square(int s) : side{s} {}
  [[nodiscard]] int area() const override { return side * side; }
  int side;
};
struct Box : Shape {
  Box(int x, int y) : a{x}, b{y} {}
  [[nodiscard]] int area() const override { return a * b; }
  int a, b;
};

int deep(int n) {
  const std::string text(static_cast<unsigned>(n), 'x');
  if (n > 2) throw n;
  return deep(n + 1) + static_cast<int>(text.size());
}

}  // namespace

int main() {
  try {
    deep(2);
  } catch (int) {
  }
  BEGIN();
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 20; ++i) {
    if (i % 3 == 0) {
      shapes.push_back(std::make_unique<Square>(i));
    } else {
      shapes.push_back(std::make_unique<Box>(i, i + 2));
    }
  }
  std::sort(shapes.begin(), shapes.end(),
            [](const auto& x, const auto& y) { return x->area() > y->area(); });
  int total = 0;
  std::string text;
  for (const auto& shape : shapes) {
    total += shape->area();
    text += std::to_string(total) + ",";
  }
  try {
    total += deep(1);
  } catch (int n) {
    total += n;
  }
  static volatile int somewhere = 0;
  volatile int* volatile place = total == -1 ? &somewhere : nullptr;
  *place = static_cast<int>(text.size());
}

// SPDX-License-Identifier: Apache-2.0
