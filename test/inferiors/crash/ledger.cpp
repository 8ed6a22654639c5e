// In a thread: virtual functions check orders, exceptions pass destructors and are rethrown, and
// some calls are tail calls. Then a name that is too long smashes a pointer, to data or to a
// function, which the program follows a little later.
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

// clang calls it for an empty std::function. gdb steps backwards over a function by its symbol, and
// a stripped libc has none for its memset.
extern "C" void* memset(void* to, int value, std::size_t size) {
  auto* bytes = static_cast<volatile char*>(to);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(value);
  return to;
}

namespace ledger {

volatile int balance;

struct Account {
  char name[8] = {};
  int* cents = nullptr;
  void (*close)(Account&) = nullptr;
};

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Undo {
  explicit Undo(int amount) : amount{amount} {}
  ~Undo() { balance = balance - amount; }
  int amount;
};

struct Rule {
  virtual ~Rule() = default;
  virtual void check(int amount) const = 0;
};

struct Limit : Rule {
  explicit Limit(int most) : most{most} {}
  void check(int amount) const override {
    if (amount > most) throw Failure{"limit"};
  }
  int most;
};

struct Nested : Rule {
  Nested(std::unique_ptr<Rule> inner, int fee) : inner{std::move(inner)}, fee{fee} {}
  void check(int amount) const override {
    const Undo undo{fee};
    try {
      inner->check(amount + fee);
    } catch (const Failure&) {
      const Undo again{1};
      throw;
    }
  }
  std::unique_ptr<Rule> inner;
  int fee;
};

void close_account(Account& account) {
  *account.cents = 0;
}

int depth_of(int amount) {
  return amount <= 1 ? 0 : 1 + depth_of(amount / 2);
}

bool book(const Rule& rule, int amount) {
  try {
    rule.check(amount);
  } catch (const Failure& failure) {
    balance = balance + static_cast<int>(std::strlen(failure.what()));
    return false;
  }
  balance = balance + depth_of(amount);
  return true;
}

void set_name(Account& account, const char* name) {
  for (std::size_t i = 0; i == 0 || name[i - 1] != '\0'; ++i) {
    account.name[i] = name[i];  // smashes
  }
}

void visit(std::vector<int>& amounts, const std::function<void(int)>& each) {
  for (const int amount : amounts) each(amount);
}

void finish(Account& account) {
  account.close(account);
}

void run(const char* name) {
  int cents = 5;
  Account account{{}, &cents, close_account};
  const Nested rule{std::make_unique<Limit>(100), 3};
  set_name(account, "short");
  finish(account);
  std::vector<int> amounts{10, 200};
  visit(amounts, [&](int amount) { book(rule, amount); });
  set_name(account, name);
  amounts.pop_back();
  visit(amounts, [&](int amount) { book(rule, amount + 1); });
  finish(account);
}

}  // namespace ledger

int main(int argc, char** argv) {
  // Bind symbols here that are bound at their first use.
  ledger::book(ledger::Limit{0}, 1);
  // The name smashes the data pointer with an unmapped address, or the function pointer too.
  const bool calls = argc > 1 && std::strcmp(argv[1], "call") == 0;
  std::thread thread{ledger::run, calls ? "12345678abcdef\1\1ABCDEF" : "12345678abcdef"};
  thread.join();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
