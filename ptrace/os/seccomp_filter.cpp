// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/seccomp_filter.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include <linux/audit.h>

namespace backtrail::tracee {
namespace {

constexpr std::uint32_t kKill = SECCOMP_RET_KILL_THREAD;
constexpr std::uint32_t kShiftMask = 31;

/// Reads a 32-bit word of seccomp_data; nullopt if its value is not known.
using ReadWord = std::optional<std::uint32_t> (*)(const seccomp_data& call, std::uint32_t offset);

std::optional<std::uint32_t> any_word(const seccomp_data& call, std::uint32_t offset) {
  std::uint32_t word = 0;
  if (offset % sizeof word != 0 || offset > sizeof call - sizeof word) return std::nullopt;
  std::array<std::uint8_t, sizeof call> bytes{};
  std::memcpy(bytes.data(), &call, sizeof call);
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

std::optional<std::uint32_t> word_of_number(const seccomp_data& call, std::uint32_t offset) {
  const bool known = offset == offsetof(seccomp_data, nr) || offset == offsetof(seccomp_data, arch);
  return known ? any_word(call, offset) : std::nullopt;
}

std::optional<std::uint32_t> word_of_number_or_second(const seccomp_data& call,
                                                      std::uint32_t offset) {
  constexpr std::uint32_t kSecond = offsetof(seccomp_data, args) + sizeof(std::uint64_t);
  const bool known = offset >= kSecond && offset < kSecond + sizeof(std::uint64_t);
  return known ? any_word(call, offset) : word_of_number(call, offset);
}

/// The kernel's BPF machine (Documentation/networking/filter.rst), with the instructions that
/// seccomp accepts (kernel/seccomp.c, seccomp_check_filter()).
class Machine {
 public:
  Machine(const seccomp_data& call, ReadWord read) : call_{call}, read_{read} {}

  /// Returns the program's verdict; nullopt if it depends on an unknown word.
  std::optional<std::uint32_t> run(const std::vector<sock_filter>& program) {
    // All jumps go forward.
    for (std::size_t at = 0; at < program.size(); ++at) {
      const sock_filter& insn = program[at];
      switch (BPF_CLASS(insn.code)) {
        case BPF_RET:
          return BPF_RVAL(insn.code) == BPF_A ? a_ : insn.k;
        case BPF_JMP:
          at += jump(insn);
          break;
        case BPF_LD:
        case BPF_LDX:
          if (!load(insn)) return std::nullopt;
          break;
        case BPF_ST:
          scratch_.at(insn.k % scratch_.size()) = a_;
          break;
        case BPF_STX:
          scratch_.at(insn.k % scratch_.size()) = x_;
          break;
        case BPF_ALU:
          if (!compute(insn)) return kKill;
          break;
        default:  // BPF_MISC
          (BPF_MISCOP(insn.code) == BPF_TAX ? x_ : a_) = BPF_MISCOP(insn.code) == BPF_TAX ? a_ : x_;
          break;
      }
    }
    return kKill;
  }

 private:
  [[nodiscard]] std::uint32_t operand(const sock_filter& insn) const {
    return BPF_SRC(insn.code) == BPF_X ? x_ : insn.k;
  }

  [[nodiscard]] std::size_t jump(const sock_filter& insn) const {
    const std::uint32_t other = operand(insn);
    switch (BPF_OP(insn.code)) {
      case BPF_JA:
        return insn.k;
      case BPF_JEQ:
        return a_ == other ? insn.jt : insn.jf;
      case BPF_JGT:
        return a_ > other ? insn.jt : insn.jf;
      case BPF_JGE:
        return a_ >= other ? insn.jt : insn.jf;
      default:  // BPF_JSET
        return (a_ & other) != 0 ? insn.jt : insn.jf;
    }
  }

  bool load(const sock_filter& insn) {
    std::uint32_t& to = BPF_CLASS(insn.code) == BPF_LD ? a_ : x_;
    switch (BPF_MODE(insn.code)) {
      case BPF_IMM:
        to = insn.k;
        return true;
      case BPF_MEM:
        to = scratch_.at(insn.k % scratch_.size());
        return true;
      case BPF_LEN:
        to = sizeof(seccomp_data);
        return true;
      default: {  // BPF_ABS
        const auto word = read_(call_, insn.k);
        to = word.value_or(0);
        return word.has_value();
      }
    }
  }

  /// Returns false on a division by zero.
  bool compute(const sock_filter& insn) {
    const std::uint32_t other = operand(insn);
    switch (BPF_OP(insn.code)) {
      case BPF_ADD:
        a_ += other;
        return true;
      case BPF_SUB:
        a_ -= other;
        return true;
      case BPF_MUL:
        a_ *= other;
        return true;
      case BPF_DIV:
        if (other == 0) return false;
        a_ /= other;
        return true;
      case BPF_OR:
        a_ |= other;
        return true;
      case BPF_AND:
        a_ &= other;
        return true;
      case BPF_XOR:
        a_ ^= other;
        return true;
      case BPF_LSH:
        a_ <<= other & kShiftMask;
        return true;
      case BPF_RSH:
        a_ >>= other & kShiftMask;
        return true;
      default:  // BPF_NEG
        a_ = 0 - a_;
        return true;
    }
  }

  const seccomp_data& call_;
  ReadWord read_;
  std::uint32_t a_ = 0;
  std::uint32_t x_ = 0;
  std::array<std::uint32_t, BPF_MEMWORDS> scratch_{};
};

bool reads_place(const sock_filter& insn) {
  constexpr std::uint32_t kBegin = offsetof(seccomp_data, instruction_pointer);
  return BPF_CLASS(insn.code) == BPF_LD && BPF_MODE(insn.code) == BPF_ABS && insn.k >= kBegin &&
         insn.k < kBegin + sizeof(seccomp_data::instruction_pointer);
}

}  // namespace

seccomp_data system_call(std::uint32_t number, std::initializer_list<std::uint64_t> arguments) {
  seccomp_data call{};
  call.nr = static_cast<int>(number);
  call.arch = AUDIT_ARCH_X86_64;
  std::copy(arguments.begin(), arguments.end(), std::begin(call.args));
  return call;
}

std::uint32_t SeccompFilter::judge(const seccomp_data& call) const {
  return Machine{call, any_word}.run(program_).value_or(kKill);
}

bool SeccompFilter::always_allows(std::uint32_t number) const {
  return Machine{system_call(number, {}), word_of_number}.run(program_) == SECCOMP_RET_ALLOW;
}

bool SeccompFilter::always_allows(std::uint32_t number, std::uint64_t second) const {
  return Machine{system_call(number, {0, second}), word_of_number_or_second}.run(program_) ==
         SECCOMP_RET_ALLOW;
}

bool SeccompFilter::looks_at_place() const {
  return std::any_of(program_.begin(), program_.end(), reads_place);
}

bool SeccompFilters::allow(const seccomp_data& call) const {
  return std::all_of(filters_.begin(), filters_.end(), [&](const SeccompFilter& filter) {
    const std::uint32_t action = filter.judge(call) & SECCOMP_RET_ACTION_FULL;
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
  });
}

bool SeccompFilters::always_allow(std::uint32_t number) const {
  return std::all_of(filters_.begin(), filters_.end(),
                     [=](const SeccompFilter& filter) { return filter.always_allows(number); });
}

bool SeccompFilters::always_allow(std::uint32_t number, std::uint64_t second) const {
  return std::all_of(filters_.begin(), filters_.end(), [=](const SeccompFilter& filter) {
    return filter.always_allows(number, second);
  });
}

bool SeccompFilters::look_at_place() const {
  return std::any_of(filters_.begin(), filters_.end(),
                     [](const SeccompFilter& filter) { return filter.looks_at_place(); });
}

}  // namespace backtrail::tracee
