// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A few bytes of code, as the code cache sees a program.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "arch/base/address.hpp"
#include "arch/x86/translate/translator.hpp"
#include "ptrace/codecache/translation/code_facts.hpp"

namespace backtrail::tracee::cache {

class FakeProgram {
 public:
  static constexpr TraceeAddr kBegin{0x40'1000};
  static constexpr std::size_t kBytes = 256;
  /// nop; jz kTarget; ret
  static constexpr TraceeAddr kStart = kBegin;
  static constexpr TraceeAddr kJump = kBegin + 1;
  /// nop; ret
  static constexpr TraceeAddr kTarget = kBegin + 0x10;
  /// call kTarget; ret
  static constexpr TraceeAddr kCaller = kBegin + 0x20;

  FakeProgram() {
    bytes_.fill(0xcc);
    put(0, {0x90, 0x74, 0x0d, 0xc3});
    put(0x10, {0x90, 0xc3});
    put(0x20, {0xe8, 0xeb, 0xff, 0xff, 0xff, 0xc3});
  }
  void put(std::size_t at, std::initializer_list<std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  [[nodiscard]] arch::x86::translate::CodeSource source() {
    return {.read = [this](TraceeAddr at, std::span<std::uint8_t> out) -> std::size_t {
              if (at < kBegin || at >= kBegin + kBytes) return 0;
              const auto there = std::span{bytes_}.subspan(at - kBegin);
              const std::size_t count = std::min(out.size(), there.size());
              std::copy_n(there.begin(), count, out.begin());
              return count;
            },
            .stop_before = {}};
  }
  [[nodiscard]] CodeFacts facts() {
    using arch::x86::translate::UntranslatableReason;
    return {.left_to_cpu =
                [this](TraceeAddr at) {
                  return left_to_cpu_.contains(at) ? UntranslatableReason::kBreakpoint
                                                   : UntranslatableReason::kNone;
                },
            .may_change = [this](TraceeAddr) { return may_change_; },
            .made_here = [this](TraceeAddr) { return may_change_; },
            .look_again = [this](TraceeAddr) { ++looks_; },
            .has_no_sections = [](TraceeAddr) { return true; },
            .pointer_at = [this](TraceeAddr at) -> std::optional<TraceeAddr> {
              const auto found = pointers_.find(at);
              return found == pointers_.end() ? std::nullopt : std::optional{found->second};
            }};
  }
  /// Puts a pointer into the program's memory.
  void point(TraceeAddr at, TraceeAddr to) { pointers_[at] = to; }
  void leave_to_cpu(TraceeAddr at) { left_to_cpu_.insert(at); }
  void set_may_change(bool may_change) { may_change_ = may_change; }
  /// Calls of CodeFacts::look_again.
  [[nodiscard]] int looks() const { return looks_; }

 private:
  std::array<std::uint8_t, kBytes> bytes_{};
  std::set<TraceeAddr> left_to_cpu_;
  std::map<TraceeAddr, TraceeAddr> pointers_;
  bool may_change_ = false;
  int looks_ = 0;
};

}  // namespace backtrail::tracee::cache
