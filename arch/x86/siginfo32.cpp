// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/siginfo32.hpp"

namespace backtrail::arch::x86 {
namespace {

enum class Extension : std::uint8_t { kZero, kSign };

/// A field's place in both layouts.
struct Field {
  std::uint8_t native_at;
  std::uint8_t native_bytes;
  std::uint8_t i386_at;
  std::uint8_t i386_bytes;
  Extension extension = Extension::kZero;
};

constexpr std::array<Field, 3> kCommon{{{0, 4, 0, 4}, {4, 4, 4, 4}, {8, 4, 8, 4}}};
// pid or timer id, uid or overrun, value.
constexpr std::array<Field, 2> kKill{{{16, 4, 12, 4}, {20, 4, 16, 4}}};
constexpr std::array<Field, 3> kQueued{{{16, 4, 12, 4}, {20, 4, 16, 4}, {24, 8, 20, 4}}};
// pid, uid, status, utime, stime.
constexpr std::array<Field, 5> kChild{{{16, 4, 12, 4},
                                       {20, 4, 16, 4},
                                       {24, 4, 20, 4},
                                       {32, 8, 24, 4, Extension::kSign},
                                       {40, 8, 28, 4, Extension::kSign}}};
// addr, addr_lsb; then by code: lower and upper bound, the protection key, or perf's data.
constexpr std::array<Field, 2> kFault{{{16, 8, 12, 4}, {24, 2, 16, 2}}};
constexpr std::array<Field, 4> kBounds{
    {{16, 8, 12, 4}, {24, 2, 16, 2}, {32, 8, 20, 4}, {40, 8, 24, 4}}};
constexpr std::array<Field, 3> kKey{{{16, 8, 12, 4}, {24, 2, 16, 2}, {32, 4, 20, 4}}};
constexpr std::array<Field, 4> kPerf{
    {{16, 8, 12, 4}, {24, 8, 16, 4}, {32, 4, 20, 4}, {36, 4, 24, 4}}};
// band, fd.
constexpr std::array<Field, 2> kPoll{{{16, 8, 12, 4, Extension::kSign}, {24, 4, 16, 4}}};
// call address, number, architecture.
constexpr std::array<Field, 3> kSystemCall{{{16, 8, 12, 4}, {24, 4, 16, 4}, {28, 4, 20, 4}}};

// Linux signal numbers of x86 and si_code values (asm-generic/siginfo.h).
enum Signal : std::int32_t {
  kSigill = 4,
  kSigtrap = 5,
  kSigbus = 7,
  kSigfpe = 8,
  kSigsegv = 11,
  kSigchld = 17,
  kSigpoll = 29,
  kSigsys = 31,
};
constexpr std::int32_t kSiUser = 0;
constexpr std::int32_t kSiKernel = 0x80;
constexpr std::int32_t kSiSigio = -5;
constexpr std::int32_t kTrapPerf = 6;
constexpr std::int32_t kSegvBounds = 3;
constexpr std::int32_t kSegvKey = 4;
constexpr std::int32_t kLastPollCode = 6;

std::span<const Field> fault_fields(std::int32_t signal, std::int32_t code) {
  if (signal == kSigsegv && code == kSegvBounds) return kBounds;
  if (signal == kSigsegv && code == kSegvKey) return kKey;
  if (signal == kSigtrap && code == kTrapPerf) return kPerf;
  return kFault;
}

/// Returns the fields that the kernel sets for this signal and code, as its siginfo_layout()
/// decides.
std::span<const Field> fields_of(std::int32_t signal, std::int32_t code) {
  if (code <= kSiUser || code >= kSiKernel) {
    if (code == kSiSigio) return kPoll;
    return code < kSiUser ? std::span<const Field>{kQueued} : kKill;
  }
  switch (signal) {
    case kSigill:
    case kSigtrap:
    case kSigbus:
    case kSigfpe:
    case kSigsegv:
      return fault_fields(signal, code);
    case kSigchld:
      return kChild;
    case kSigpoll:
      return kPoll;
    case kSigsys:
      return kSystemCall;
    default:  // A file's own signal (F_SETSIG) carries SIGPOLL's codes.
      return code <= kLastPollCode ? std::span<const Field>{kPoll} : kKill;
  }
}

std::uint64_t load(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

void store(std::uint64_t value, std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

std::uint64_t widen(std::uint64_t value, const Field& field) {
  if (field.extension == Extension::kZero) return value;
  const std::uint64_t sign = std::uint64_t{1} << (8 * field.i386_bytes - 1);
  return (value ^ sign) - sign;
}

std::int32_t int_at(std::span<const std::uint8_t, kSiginfoBytes> info, std::size_t at) {
  return static_cast<std::int32_t>(load(info.subspan(at, 4)));
}

/// Signal and code have equal offsets in both layouts.
std::span<const Field> fields_of(std::span<const std::uint8_t, kSiginfoBytes> info) {
  return fields_of(int_at(info, 0), int_at(info, 8));
}

}  // namespace

SiginfoBytes siginfo_to_i386(std::span<const std::uint8_t, kSiginfoBytes> native) {
  SiginfoBytes out{};
  for (const auto fields : {std::span<const Field>{kCommon}, fields_of(native)}) {
    for (const Field& f : fields) {
      store(load(native.subspan(f.native_at, f.native_bytes)),
            std::span{out}.subspan(f.i386_at, f.i386_bytes));
    }
  }
  return out;
}

SiginfoBytes siginfo_from_i386(std::span<const std::uint8_t, kSiginfoBytes> i386) {
  SiginfoBytes out{};
  for (const auto fields : {std::span<const Field>{kCommon}, fields_of(i386)}) {
    for (const Field& f : fields) {
      store(widen(load(i386.subspan(f.i386_at, f.i386_bytes)), f),
            std::span{out}.subspan(f.native_at, f.native_bytes));
    }
  }
  return out;
}

}  // namespace backtrail::arch::x86
