// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A program of a few bytes of code, for tests of past values.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "decoder/values/solved_window.hpp"
#include "decoder/values/value_history.hpp"

namespace backtrail::decoder::values {

inline constexpr std::uint64_t kCode = 0x400000;
inline constexpr std::uint64_t kData = 0x600000;
inline constexpr std::uint64_t kStack = 0x7ffe0000;
inline constexpr Slot kR8 = 8;

using Bytes = std::vector<std::uint8_t>;

inline const Bytes store_to_rdx{0x48, 0x89, 0x32};  // mov %rsi, (%rdx)
inline const Bytes system_call{0x0f, 0x05};

/// A stopped program with code at kCode, one data page and one stack page.
class Program : public CodeReader, public EndState {
 public:
  arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t at = address.value() + i - kCode;
      out[i] = at < code.size() ? code[at] : 0x90;
    }
    return out.size();
  }
  Known reg(Slot slot) override { return regs[slot]; }
  PageKind page(TraceeAddr address) override {
    const std::uint64_t page = address.value() & ~std::uint64_t{0xfff};
    if (page == kCode) return code_kind;
    if (page == kData) return data_kind;
    return page == kStack ? PageKind::kPrivate : PageKind::kUnknown;
  }
  Known granule(TraceeAddr address) override { return cpu::known(memory[address.value()]); }
  bool all_is_private() override { return all_private; }
  std::optional<std::pair<TraceeAddr, TraceeAddr>> heap() override { return brk_heap; }

  /// Appends an instruction that runs next and falls through.
  void run(const Bytes& bytes) {
    const TraceeAddr pc{kCode + code.size()};
    code.insert(code.end(), bytes.begin(), bytes.end());
    window.steps.push_back({pc, TraceeAddr{kCode + code.size()}});
    window.end_pc = TraceeAddr{kCode + code.size()};
  }
  SolvedWindow solve() { return {window, models, *this}; }
  /// Returns the history of the steps, which are solved in windows of `window_steps`.
  ValueHistory history(std::size_t window_steps) {
    return {window.steps.size(),
            [this](std::size_t begin, std::size_t end) { return part(begin, end); },
            *this,
            *this,
            cpu::kAnyComponents,
            {.window_steps = window_steps}};
  }

  Bytes code;
  PageKind code_kind = PageKind::kConstant;
  PageKind data_kind = PageKind::kPrivate;
  bool all_private = true;
  std::optional<std::pair<TraceeAddr, TraceeAddr>> brk_heap;
  std::array<Known, cpu::kSlotCount> regs{};
  std::map<std::uint64_t, std::uint64_t> memory;
  Window window;
  ModelCache models{*this, 7};  // SSE and AVX

 private:
  [[nodiscard]] Window part(std::size_t begin, std::size_t end) const {
    Window out;
    out.steps.assign(window.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                     window.steps.begin() + static_cast<std::ptrdiff_t>(end));
    for (Event event : window.events) {
      if (event.before <= begin || event.before > end) continue;
      event.before -= begin;
      out.events.push_back(event);
    }
    out.end_pc = end < window.steps.size() ? window.steps[end].pc : window.end_pc;
    return out;
  }
};

}  // namespace backtrail::decoder::values
