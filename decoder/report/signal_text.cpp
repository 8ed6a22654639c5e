// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/signal_text.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "arch/base/bytes.hpp"
#include "decoder/report/report.hpp"

namespace backtrail::decoder {
namespace {

struct CodeWords {
  int signal;
  int code;
  const char* words;
};

constexpr std::array kCodes{
    CodeWords{SIGSEGV, SEGV_MAPERR, "access to unmapped memory at {}"},
    CodeWords{SIGSEGV, SEGV_ACCERR, "access to {} not permitted by the memory's protection"},
    CodeWords{SIGSEGV, SEGV_BNDERR, "failed bounds check for an access to {}"},
    CodeWords{SIGSEGV, SEGV_PKUERR, "access to {} forbidden by its protection key"},
    CodeWords{SIGBUS, BUS_ADRALN, "misaligned access to {}"},
    CodeWords{SIGBUS, BUS_ADRERR, "access to {} beyond the end of the mapped object"},
    CodeWords{SIGBUS, BUS_OBJERR, "hardware error in memory at {}"},
    CodeWords{SIGFPE, FPE_INTDIV, "integer division by zero, or a quotient that is too large"},
    CodeWords{SIGFPE, FPE_INTOVF, "integer overflow"},
    CodeWords{SIGFPE, FPE_FLTDIV, "floating-point division by zero"},
    CodeWords{SIGFPE, FPE_FLTOVF, "floating-point overflow"},
    CodeWords{SIGFPE, FPE_FLTUND, "floating-point underflow"},
    CodeWords{SIGFPE, FPE_FLTRES, "inexact floating-point result"},
    CodeWords{SIGFPE, FPE_FLTINV, "invalid floating-point operation"},
    CodeWords{SIGILL, ILL_ILLOPC, "illegal instruction"},
    CodeWords{SIGILL, ILL_ILLOPN, "illegal instruction"},
    CodeWords{SIGILL, ILL_PRVOPC, "privileged instruction"},
    CodeWords{SIGTRAP, TRAP_BRKPT, "breakpoint instruction"},
};

std::string plain_words(int signal) {
  const char* words = ::sigdescr_np(signal);
  return words == nullptr ? "" : words;
}

std::string sent_words(int signal, int code, std::span<const std::uint8_t> siginfo,
                       std::size_t fields) {
  const auto sender = load_le<std::uint32_t>(siginfo, fields);
  std::string words = plain_words(signal);
  switch (code) {
    case SI_USER:
      return words + fmt::format(", sent by process {} with kill", sender);
    case SI_TKILL:
      return words + fmt::format(", sent by process {} to this thread", sender);
    case SI_QUEUE:
      return words + fmt::format(", sent by process {} with sigqueue", sender);
    default:
      return words;
  }
}

std::string fault_words(int signal, int code, TraceeAddr address, TraceeAddr pc, TraceeAddr sp) {
  std::string words;
  for (const CodeWords& known : kCodes) {
    if (known.signal == signal && known.code == code) {
      words = fmt::format(fmt::runtime(known.words), fmt::format("{:#x}", address.value()));
    }
  }
  if (words.empty()) return plain_words(signal);
  if (signal != SIGSEGV) return words;
  constexpr std::uint64_t kNear = 64U << 10U;
  if (address == pc) return words + " (execution jumped there)";
  if (address.value() < 4096) return words + " (null pointer, or a small offset from one)";
  if (address - sp < kNear || sp - address < kNear) {
    return words + fmt::format(" (close to the stack pointer, {}: possible stack overflow)", sp);
  }
  return words;
}

}  // namespace

std::string signal_name(int signal) {
  if (signal == 0) return "no signal";
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : std::string{"SIG"} + name;
}

SignalText signal_text(int signal, std::span<const std::uint8_t> siginfo, arch::Isa isa,
                       TraceeAddr pc, TraceeAddr sp) {
  const bool wide = isa == arch::Isa::kAmd64;
  const std::size_t fields = wide ? 16 : 12;
  if (siginfo.size() < fields + 8) return {plain_words(signal), std::nullopt};
  if (static_cast<int>(load_le<std::uint32_t>(siginfo, 0)) != signal) {
    return {plain_words(signal), std::nullopt};
  }
  const int code = static_cast<int>(load_le<std::uint32_t>(siginfo, 8));
  if (code <= 0) return {sent_words(signal, code, siginfo, fields), std::nullopt, true};
  const bool fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
                     signal == SIGILL || signal == SIGTRAP;
  if (!fault) return {plain_words(signal), std::nullopt};
  if (code == SI_KERNEL) {
    if (signal != SIGSEGV) return {plain_words(signal), std::nullopt};
    return {
        "general protection fault: a non-canonical address, a misaligned vector access or a "
        "privileged instruction; the CPU reports no address",
        std::nullopt};
  }
  const TraceeAddr address{wide ? load_le<std::uint64_t>(siginfo, fields)
                                : load_le<std::uint32_t>(siginfo, fields)};
  return {fault_words(signal, code, address, pc, sp), address};
}

}  // namespace backtrail::decoder
