// SPDX-License-Identifier: Apache-2.0
// Dies after global variables of two files were set: declared before they are defined, of
// namespaces and classes, and of one name in several places. It is built with optimisation.
extern int shared;
extern int in_other;
void set_others(int value);

[[gnu::used]] static int in_both = 1;
int shared = 2;

namespace one {
int count = 1;
struct Box {
  static int made;
};
int Box::made = 1;
}  // namespace one
namespace other {
int count = 2;
}

[[gnu::noinline]] static void set_own(int value) {
  in_both = value + 10;
  shared = value + 20;
  one::count = value + 30;
  one::Box::made = value + 40;
  other::count = value + 50;
}

int main(int argc, char**) {
  set_own(argc);
  set_others(argc);
  return *reinterpret_cast<volatile int*>(16) + in_both + in_other;
}
