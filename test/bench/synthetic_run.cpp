#include "test/bench/synthetic_run.hpp"

#include <algorithm>

namespace backtrail::bench {
namespace {

constexpr TraceeAddr kBase{0x5555'5555'4000};
constexpr std::size_t kLevels = 7;

}  // namespace

SyntheticRun::SyntheticRun(std::size_t functions, std::size_t records) : wanted_{records} {
  for (std::size_t i = 0; i < kLevels * functions; ++i) make_function(i, functions);
  // Call displacements are known only once all functions have their addresses.
  for (Function& function : functions_) {
    for (const Item& item : function.items) {
      if (item.kind != ItemKind::kCall) continue;
      const TraceeAddr behind = item.branch + item.length;
      const auto displacement = static_cast<std::uint32_t>(functions_[item.callee].entry - behind);
      for (std::size_t i = 0; i < 4; ++i) {
        code_[behind - kBase - 4 + i] = static_cast<std::uint8_t>(displacement >> (8 * i));
      }
    }
  }
  // The dispatcher that calls functions of the first level: call *rax; jmp back.
  const TraceeAddr call = kBase + code_.size();
  emit({0xff, 0xd0, 0xeb, 0xfc});
  records_.reserve(records + kLevels);
  records_.push_back(decoder::gap(decoder::GapReason::kStart, {}, call));
  while (!done()) {
    const std::size_t callee = random_() % functions;
    record(call, functions_[callee].entry);
    run(callee, call + 2);
    if (!done()) record(call + 2, call);
  }
}

void SyntheticRun::make_function(std::size_t index, std::size_t functions) {
  Function function{kBase + code_.size(), {}};
  const std::size_t next_level = (index / functions + 1) * functions;
  const bool leaf = next_level == kLevels * functions;
  std::size_t calls = leaf ? 0 : 2;
  for (std::size_t i = 0; i < 10; ++i) {
    const TraceeAddr begin = kBase + code_.size();
    for (auto n = random_() % 6; n != 0; --n) emit({0x48, 0x89, 0xc8});
    const TraceeAddr branch = kBase + code_.size();
    const std::size_t callee = leaf ? 0 : next_level + random_() % functions;
    const auto back = static_cast<std::uint8_t>(begin - branch - 2);
    switch (const auto choice = random_() % 16) {
      case 0:
      case 1:
      case 2:
        if (calls != 0) {
          --calls;
          const bool indirect = one_in(10);
          const auto kind = indirect ? ItemKind::kIndirectCall : ItemKind::kCall;
          function.items.push_back(
              {kind, begin, branch, static_cast<std::uint8_t>(indirect ? 2 : 5), callee});
          if (indirect) {
            emit({0xff, 0xd0});
          } else {
            emit({0xe8, 0, 0, 0, 0});
          }
          break;
        }
        [[fallthrough]];
      case 3:
      case 4:
        function.items.push_back({ItemKind::kLoop, begin, branch, 2, 0});
        emit({0x75, back});
        break;
      case 5:
        function.items.push_back({ItemKind::kJump, begin, branch, 2, 0});
        emit({0xeb, 0x03, 0x48, 0x89, 0xc8});
        break;
      default:
        function.items.push_back({ItemKind::kSkip, begin, branch, 2, 0});
        emit({static_cast<std::uint8_t>(0x70 + choice), 0x03, 0x48, 0x89, 0xc8});
    }
  }
  function.items.push_back({ItemKind::kReturn, kBase + code_.size(), kBase + code_.size(), 1, 0});
  emit({0xc3});
  functions_.push_back(std::move(function));
}

void SyntheticRun::run(std::size_t function, TraceeAddr return_to) {
  for (const Item& item : functions_[function].items) {
    const TraceeAddr behind = item.branch + item.length;
    if (done()) return;
    switch (item.kind) {
      case ItemKind::kSkip:
        if (one_in(2)) {
          record(item.branch, behind + 3);
        } else {
          ++not_taken_;
        }
        break;
      case ItemKind::kLoop:
        while (!done() && !one_in(4)) record(item.branch, item.begin);
        ++not_taken_;
        break;
      case ItemKind::kJump:
        record(item.branch, behind + 3);
        break;
      case ItemKind::kCall:
      case ItemKind::kIndirectCall:
        record(item.branch, functions_[item.callee].entry);
        run(item.callee, behind);
        break;
      case ItemKind::kReturn:
        record(item.branch, return_to);
        break;
    }
  }
}

TraceeAddr SyntheticRun::base() {
  return kBase;
}

std::size_t SyntheticRun::read_code(TraceeAddr address, std::span<std::uint8_t> out) {
  if (address < kBase || address - kBase >= code_.size()) return 0;
  const auto rest = std::span{code_}.subspan(address - kBase);
  const std::size_t count = std::min(rest.size(), out.size());
  std::copy_n(rest.begin(), count, out.begin());
  return count;
}

}  // namespace backtrail::bench

// SPDX-License-Identifier: Apache-2.0
