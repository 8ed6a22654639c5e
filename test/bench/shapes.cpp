// A C++ program of virtual calls, containers and sorting.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

std::uint64_t state = 88172645463325252ULL;

std::uint64_t next_exit_id() {
  state ^= state << 13U;
  state ^= state >> 7U;
  state ^= state << 17U;
  return state;
}

struct Shape {
  virtual ~Shape() = default;
  [[nodiscard]] virtual std::uint64_t area() const = 0;
  virtual void grow(std::uint64_t by) = 0;
};

struct Square final : Shape {
  explicit Square(std::uint64_t s) : side{s} {}
  [[nodiscard]] std::uint64_t area() const override { return side * side; }
  void grow(std::uint64_t by) override { side = (side + by) % 1000; }
  std::uint64_t side;
};

struct Box final : Shape {
  Box(std::uint64_t w, std::uint64_t h) : width{w}, height{h} {}
  [[nodiscard]] std::uint64_t area() const override { return width * height; }
  void grow(std::uint64_t by) override { width = (width + by) % 500; }
  std::uint64_t width, height;
};

struct Group final : Shape {
  [[nodiscard]] std::uint64_t area() const override {
    std::uint64_t sum = 0;
    for (const auto& part : parts) sum += part->area();
    return sum;
  }
  void grow(std::uint64_t by) override {
    for (const auto& part : parts) part->grow(by);
  }
  std::vector<std::unique_ptr<Shape>> parts;
};

std::unique_ptr<Shape> make(int depth) {
  switch (depth > 0 ? next_exit_id() % 3 : next_exit_id() % 2) {
    case 0:
      return std::make_unique<Square>(next_exit_id() % 100);
    case 1:
      return std::make_unique<Box>(next_exit_id() % 100, next_exit_id() % 100);
    default: {
      auto group = std::make_unique<Group>();
      for (int i = 0; i < 6; ++i) group->parts.push_back(make(depth - 1));
      return group;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  std::vector<std::unique_ptr<Shape>> shapes;
  shapes.reserve(4000);
  for (int i = 0; i < 4000; ++i) shapes.push_back(make(4));
  std::map<std::string, std::uint64_t> seen;
  std::uint64_t total = 0;
  for (int round = 0; round < rounds; ++round) {
    for (const auto& shape : shapes) {
      shape->grow(static_cast<std::uint64_t>(round));
      total += shape->area();
    }
    std::sort(shapes.begin(), shapes.end(),
              [](const auto& a, const auto& b) { return a->area() < b->area(); });
    for (int i = 0; i < 2000; ++i) seen[std::to_string(next_exit_id() % 3000)] += total & 7U;
  }
  std::printf("%llu %zu\n", static_cast<unsigned long long>(total), seen.size());
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
