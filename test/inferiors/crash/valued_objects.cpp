// SPDX-License-Identifier: Apache-2.0
// Prints the values of its variables like valued.c, then dies.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace shapes {

enum class Kind : std::uint8_t { kRound = 1, kFlat };

struct Base {
  virtual ~Base() = default;
  int id = 7;
};

class Shape : public Base {
 public:
  Shape(std::string name, bool big) : name_{std::move(name)}, big_{big} {}
  [[gnu::noinline]] int area(const std::string& why, int& out, int&& gone) const;

 private:
  std::string name_;
  bool big_;
};

int* volatile nowhere;

int Shape::area(const std::string& why, int& out, int&& gone) const {
  out = 3;
  const auto inner = [&](int factor) {
    std::printf("operator()/0 factor %d\n", factor);
    std::printf("area/0 this %p\n", static_cast<const void*>(this));
    std::printf("area/0 why @%p: \"%s\"\n", static_cast<const void*>(&why), why.c_str());
    std::printf("area/0 out @%p: %d\n", static_cast<void*>(&out), out);
    std::printf("area/0 gone @%p: %d\n", static_cast<void*>(&gone), gone);
    std::fflush(stdout);
    return *nowhere + factor + out;
  };
  return inner(6) + gone;
}

template <class Number>
[[gnu::noinline]] Number twice(Number number, Kind kind) {
  Shape shape{"a name that is too long for the object itself", true};
  int result = 0;
  std::printf("twice/0 number %g\n", static_cast<double>(number));
  std::printf("twice/0 kind %s\n", kind == Kind::kFlat ? "kFlat" : "kRound");
  std::printf("twice/0 shape {<Base>={id=7}, name_=\"%s\", big_=true}\n",
              "a name that is too long for the object itself");
  const int area = shape.area("because", result, 5);
  return number * 2 + area + result;
}

}  // namespace shapes

int main() {
  // Bytes that are no text must stay harmless.
  std::string hostile = "\x1b[31m\xff\"\n<b>";
  std::printf("main/0 hostile \"\\x1b[31m\xef\xbf\xbd\\\"\\n<b>\"\n");
  return static_cast<int>(shapes::twice(4.5, shapes::Kind::kFlat)) +
         static_cast<int>(hostile.size());
}
