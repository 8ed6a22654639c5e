// SPDX-License-Identifier: Apache-2.0
#include "server/doctor/known_program.hpp"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <sys/syscall.h>
#include <unistd.h>

namespace backtrail::server {
namespace {

// Empty functions that the compiler may neither merge nor remove.
[[gnu::noinline]] void known_begin() {
  asm volatile("nop");
}
[[gnu::noinline]] void known_end() {
  asm volatile("nop; nop");
}

using Operation = unsigned (*)(unsigned);

[[gnu::noinline]] unsigned twice(unsigned n) {
  return n + n;
}
[[gnu::noinline]] unsigned half(unsigned n) {
  return n / 2;
}
[[gnu::noinline]] unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

[[gnu::noinline]] unsigned choose(unsigned n) {
  switch (n % 7) {
    case 0:
      return n + 1;
    case 1:
      return n ^ 3U;
    case 2:
      return n * 5;
    case 3:
      return n >> 1U;
    case 4:
      return n | 8U;
    case 5:
      return n - 2;
    default:
      return 6;
  }
}

class Shape {
 public:
  virtual ~Shape() = default;
  [[nodiscard]] virtual unsigned corners() const = 0;
};
class Square : public Shape {
 public:
  [[nodiscard]] unsigned corners() const override { return 4; }
};
class Triangle : public Shape {
 public:
  [[nodiscard]] unsigned corners() const override { return 3; }
};

int compare_bytes(const void* a, const void* b) {
  return static_cast<int>(*static_cast<const std::uint8_t*>(a)) -
         static_cast<int>(*static_cast<const std::uint8_t*>(b));
}

[[gnu::noinline]] unsigned throw_and_catch(unsigned n) {
  try {
    if (n % 2 == 0) throw std::runtime_error{"known"};
  } catch (const std::runtime_error&) {
    return 1;
  }
  return 0;
}

[[gnu::noinline]] unsigned jump_far() {
  static std::jmp_buf place;
  if (setjmp(place) != 0) return 1;
  std::longjmp(place, 1);
}

[[gnu::noinline]] unsigned all_kinds() {
  volatile unsigned sum = 0;
  static const std::array<Operation, 3> operations{&twice, &half, &fibonacci};
  for (unsigned i = 0; i < 12; ++i) {
    sum = sum + operations.at(i % operations.size())(i);
    sum = sum + choose(i);
  }
  alignas(4096) static std::array<std::uint8_t, 24> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37);
  std::qsort(bytes.data(), bytes.size(), 1, &compare_bytes);
  if (!std::is_sorted(bytes.begin(), bytes.end())) return 0;
  for (unsigned i = 0; i < 4; ++i) {
    std::unique_ptr<Shape> shape;
    if (i % 2 == 0) {
      shape = std::make_unique<Square>();
    } else {
      shape = std::make_unique<Triangle>();
    }
    sum = sum + shape->corners() + static_cast<unsigned>(::syscall(SYS_getpid) > 0);
  }
  // Library functions branch on alignment: the address of a stack buffer would differ from run to
  // run.
  alignas(4096) static std::array<char, 200> text;
  std::memset(text.data(), 'x', text.size() - 1);
  sum = sum + static_cast<unsigned>(std::strlen(text.data()));
  return sum + throw_and_catch(2) + throw_and_catch(3) + jump_far();
}

}  // namespace

int run_known_program() {
  // By now the dynamic linker has loaded the program at its final address. Without a tracer the
  // signal has no effect.
  std::signal(SIGTRAP, SIG_IGN);
  (void)std::raise(SIGTRAP);
  // A first pass does work that happens only once: symbol binding, the unwinder's tables.
  const unsigned expected = all_kinds();
  known_begin();
  const unsigned sum = all_kinds();
  known_end();
  return sum == expected && sum != 0 ? 0 : 1;
}

KnownSpan known_span() {
  // NOLINTBEGIN(*-reinterpret-cast)
  return {TraceeAddr{reinterpret_cast<std::uintptr_t>(&known_begin)},
          TraceeAddr{reinterpret_cast<std::uintptr_t>(&known_end)}};
  // NOLINTEND(*-reinterpret-cast)
}

}  // namespace backtrail::server
