// SPDX-License-Identifier: Apache-2.0
#include "server/agent/agent_expression.hpp"

#include <array>
#include <limits>
#include <optional>

#include "server/agent/agent_printf.hpp"

namespace backtrail::server::agent {
namespace {

constexpr std::size_t kMaxStack = 100;
constexpr int kMaxSteps = 100'000;

/// Opcodes by wire value. The interpreter rejects those for floating point and tracing.
enum class Op : std::uint8_t {
  kFloat = 0x01,
  kAdd = 0x02,
  kSub = 0x03,
  kMul = 0x04,
  kDivSigned = 0x05,
  kDivUnsigned = 0x06,
  kRemSigned = 0x07,
  kRemUnsigned = 0x08,
  kLsh = 0x09,
  kRshSigned = 0x0a,
  kRshUnsigned = 0x0b,
  kTrace = 0x0c,
  kTraceQuick = 0x0d,
  kLogNot = 0x0e,
  kBitAnd = 0x0f,
  kBitOr = 0x10,
  kBitXor = 0x11,
  kBitNot = 0x12,
  kEqual = 0x13,
  kLessSigned = 0x14,
  kLessUnsigned = 0x15,
  kExt = 0x16,
  kRef8 = 0x17,
  kRef16 = 0x18,
  kRef32 = 0x19,
  kRef64 = 0x1a,
  kRefFloat = 0x1b,
  kRefDouble = 0x1c,
  kRefLongDouble = 0x1d,
  kLToD = 0x1e,
  kDToL = 0x1f,
  kIfGoto = 0x20,
  kGoto = 0x21,
  kConst8 = 0x22,
  kConst16 = 0x23,
  kConst32 = 0x24,
  kConst64 = 0x25,
  kReg = 0x26,
  kEnd = 0x27,
  kDup = 0x28,
  kPop = 0x29,
  kZeroExt = 0x2a,
  kSwap = 0x2b,
  kGetv = 0x2c,
  kSetv = 0x2d,
  kTracev = 0x2e,
  kTracenz = 0x2f,
  kTrace16 = 0x30,
  kPick = 0x32,
  kRot = 0x33,
  kPrintf = 0x34,
};

std::uint64_t sign_extended(std::uint64_t value, unsigned bits) {
  if (bits == 0) return 0;
  if (bits >= 64) return value;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  return ((value >> (bits - 1)) & 1) != 0 ? value | ~mask : value & mask;
}

std::uint64_t zero_extended(std::uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

Result<std::uint64_t> divide(Op op, std::uint64_t a, std::uint64_t b) {
  if (b == 0) return fail(TraceErrc::kMalformed, "agent division by zero");
  const auto signed_a = static_cast<std::int64_t>(a);
  const auto signed_b = static_cast<std::int64_t>(b);
  // INT64_MIN / -1 does not fit in 64 bits; it wraps to INT64_MIN.
  const bool wraps = signed_a == std::numeric_limits<std::int64_t>::min() && signed_b == -1;
  switch (op) {
    case Op::kDivSigned:
      return wraps ? a : static_cast<std::uint64_t>(signed_a / signed_b);
    case Op::kRemSigned:
      return wraps ? 0 : static_cast<std::uint64_t>(signed_a % signed_b);
    case Op::kDivUnsigned:
      return a / b;
    default:
      return a % b;
  }
}

std::uint64_t shift(Op op, std::uint64_t a, std::uint64_t count) {
  const bool all = count >= 64;
  if (op == Op::kLsh) return all ? 0 : a << count;
  if (op == Op::kRshUnsigned) return all ? 0 : a >> count;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(a) >> (all ? 63 : count));
}

/// Applies an operation on two values; nullopt if `op` is not one.
std::optional<Result<std::uint64_t>> binary(Op op, std::uint64_t a, std::uint64_t b) {
  using Value = Result<std::uint64_t>;
  switch (op) {
    case Op::kAdd:
      return Value{a + b};
    case Op::kSub:
      return Value{a - b};
    case Op::kMul:
      return Value{a * b};
    case Op::kDivSigned:
    case Op::kDivUnsigned:
    case Op::kRemSigned:
    case Op::kRemUnsigned:
      return divide(op, a, b);
    case Op::kLsh:
    case Op::kRshSigned:
    case Op::kRshUnsigned:
      return Value{shift(op, a, b)};
    case Op::kBitAnd:
      return Value{a & b};
    case Op::kBitOr:
      return Value{a | b};
    case Op::kBitXor:
      return Value{a ^ b};
    case Op::kEqual:
      return Value{std::uint64_t{a == b}};
    case Op::kLessSigned:
      return Value{std::uint64_t{static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b)}};
    case Op::kLessUnsigned:
      return Value{std::uint64_t{a < b}};
    default:
      return std::nullopt;
  }
}

bool is_binary(Op op) {
  switch (op) {
    case Op::kBitNot:
    case Op::kLogNot:
    case Op::kTrace:
    case Op::kTraceQuick:
      return false;
    default:
      return op >= Op::kAdd && op <= Op::kLessUnsigned;
  }
}

/// One evaluation of an expression.
class Interpreter {
 public:
  Interpreter(std::span<const std::uint8_t> code, AgentMachine& machine)
      : code_{code}, machine_{machine} {}

  /// Runs to the `end` operation.
  Result<void> run();
  Result<std::uint64_t> pop();

 private:
  Result<void> step(Op op);
  Result<void> stack_step(Op op);
  Result<void> jump(bool taken);
  Result<void> dereference(unsigned bytes);
  Result<void> print();
  Result<void> push(std::uint64_t value);
  /// Reads a big-endian immediate.
  Result<std::uint64_t> immediate(unsigned bytes);

  std::span<const std::uint8_t> code_;
  AgentMachine& machine_;
  std::size_t pc_ = 0;
  std::vector<std::uint64_t> stack_;
};

Result<void> Interpreter::push(std::uint64_t value) {
  if (stack_.size() >= kMaxStack) return fail(TraceErrc::kMalformed, "agent stack overflow", pc_);
  stack_.push_back(value);
  return {};
}

Result<std::uint64_t> Interpreter::pop() {
  if (stack_.empty()) return fail(TraceErrc::kMalformed, "agent stack underflow", pc_);
  const std::uint64_t value = stack_.back();
  stack_.pop_back();
  return value;
}

Result<std::uint64_t> Interpreter::immediate(unsigned bytes) {
  if (code_.size() - pc_ < bytes) return fail(TraceErrc::kMalformed, "agent immediate", pc_);
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value = (value << 8) | code_[pc_++];
  return value;
}

Result<void> Interpreter::jump(bool taken) {
  BT_TRY(const std::uint64_t target, immediate(2));
  if (taken) pc_ = target;
  return {};
}

Result<void> Interpreter::dereference(unsigned bytes) {
  BT_TRY(const std::uint64_t address, pop());
  std::array<std::uint8_t, 8> data{};
  BT_CHECKED(machine_.read_memory(TraceeAddr{address}, std::span{data}.first(bytes)));
  std::uint64_t value = 0;
  for (unsigned i = bytes; i > 0; --i) value = (value << 8) | data[i - 1];
  return push(value);
}

/// printf ARGS(1) LENGTH(2) FORMAT: the stack holds the function and the channel (both unused),
/// then the arguments, the first on top.
Result<void> Interpreter::print() {
  BT_TRY(const std::uint64_t count, immediate(1));
  BT_TRY(const std::uint64_t length, immediate(2));
  if (length == 0 || code_.size() - pc_ < length || code_[pc_ + length - 1] != 0) {
    return fail(TraceErrc::kMalformed, "agent printf string", pc_);
  }
  const std::string format(code_.begin() + static_cast<std::ptrdiff_t>(pc_),
                           code_.begin() + static_cast<std::ptrdiff_t>(pc_ + length - 1));
  pc_ += length;
  BT_CHECKED(pop());
  BT_CHECKED(pop());
  std::vector<std::uint64_t> arguments;
  for (std::uint64_t i = 0; i < count; ++i) {
    BT_TRY(const std::uint64_t argument, pop());
    arguments.push_back(argument);
  }
  BT_TRY(const std::string text, agent_printf(format, arguments, machine_));
  machine_.print(text);
  return {};
}

/// Executes operations that only move stack entries.
Result<void> Interpreter::stack_step(Op op) {
  switch (op) {
    case Op::kDup: {
      BT_TRY(const std::uint64_t a, pop());
      BT_CHECKED(push(a));
      return push(a);
    }
    case Op::kPop:
      BT_CHECKED(pop());
      return {};
    case Op::kSwap: {
      BT_TRY(const std::uint64_t b, pop());
      BT_TRY(const std::uint64_t a, pop());
      BT_CHECKED(push(b));
      return push(a);
    }
    case Op::kPick: {
      BT_TRY(const std::uint64_t depth, immediate(1));
      if (depth >= stack_.size()) return fail(TraceErrc::kMalformed, "agent pick", pc_);
      return push(stack_[stack_.size() - 1 - depth]);
    }
    case Op::kRot: {  // a b c => c a b
      BT_TRY(const std::uint64_t c, pop());
      BT_TRY(const std::uint64_t b, pop());
      BT_TRY(const std::uint64_t a, pop());
      BT_CHECKED(push(c));
      BT_CHECKED(push(a));
      return push(b);
    }
    default:
      return fail(TraceErrc::kUnsupported, "agent operation", static_cast<std::uint8_t>(op));
  }
}

Result<void> Interpreter::step(Op op) {
  if (is_binary(op)) {
    BT_TRY(const std::uint64_t b, pop());
    BT_TRY(const std::uint64_t a, pop());
    const auto result = binary(op, a, b);
    BT_TRY(const std::uint64_t value, *result);
    return push(value);
  }
  switch (op) {
    case Op::kLogNot: {
      BT_TRY(const std::uint64_t a, pop());
      return push(a == 0 ? 1 : 0);
    }
    case Op::kBitNot: {
      BT_TRY(const std::uint64_t a, pop());
      return push(~a);
    }
    case Op::kExt:
    case Op::kZeroExt: {
      BT_TRY(const std::uint64_t bits, immediate(1));
      BT_TRY(const std::uint64_t a, pop());
      const auto width = static_cast<unsigned>(bits);
      return push(op == Op::kExt ? sign_extended(a, width) : zero_extended(a, width));
    }
    case Op::kRef8:
      return dereference(1);
    case Op::kRef16:
      return dereference(2);
    case Op::kRef32:
      return dereference(4);
    case Op::kRef64:
      return dereference(8);
    case Op::kIfGoto: {
      BT_TRY(const std::uint64_t condition, pop());
      return jump(condition != 0);
    }
    case Op::kGoto:
      return jump(true);
    case Op::kConst8:
    case Op::kConst16:
    case Op::kConst32:
    case Op::kConst64: {
      const unsigned power = static_cast<unsigned>(op) - static_cast<unsigned>(Op::kConst8);
      BT_TRY(const std::uint64_t value, immediate(1U << power));
      return push(value);
    }
    case Op::kReg: {
      BT_TRY(const std::uint64_t number, immediate(2));
      BT_TRY(const std::uint64_t value, machine_.read_register(number));
      return push(value);
    }
    case Op::kPrintf:
      return print();
    default:
      return stack_step(op);
  }
}

Result<void> Interpreter::run() {
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    if (pc_ >= code_.size()) return fail(TraceErrc::kMalformed, "agent program counter", pc_);
    const auto op = static_cast<Op>(code_[pc_++]);
    if (op == Op::kEnd) return {};
    BT_CHECKED(step(op));
  }
  return fail(TraceErrc::kMalformed, "agent expression runs too long", pc_);
}

}  // namespace

Result<std::uint64_t> AgentExpression::evaluate(AgentMachine& machine) const {
  Interpreter interpreter{bytecode_, machine};
  BT_CHECKED(interpreter.run());
  return interpreter.pop();
}

Result<void> AgentExpression::run(AgentMachine& machine) const {
  return Interpreter{bytecode_, machine}.run();
}

}  // namespace backtrail::server::agent
