// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/superblock_maker.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace backtrail::tracee::cache {

namespace translate = arch::cpu::translate;

namespace {

constexpr std::uint64_t kAlignment = 16;

constexpr std::uint64_t kMuch = 4ULL << 20;
constexpr std::uint64_t kVeryMuch = 12ULL << 20;
constexpr std::uint32_t kLongestPlain = 32;

/// Bytes of code from which on superblocks end where another one begins and at calls: half the
/// code, at the price of a few more exits.
constexpr std::uint64_t kSavedFrom = 3ULL << 19;

}  // namespace

SuperblockMaker::SuperblockMaker(CodeMemory& memory, translate::CodeSource source, CodeFacts facts,
                                 const translate::InlineSystemCalls& inline_calls,
                                 const Stubs& stubs)
    : memory_{memory},
      source_{std::move(source)},
      facts_{std::move(facts)},
      inline_calls_{inline_calls},
      stubs_{stubs} {
  source_.stop_before = [this](TraceeAddr at) {
    return splits_.contains(at) ||
           facts_.left_to_cpu(at) != translate::UntranslatableReason::kNone ||
           facts_.may_change(at) != checked_;
  };
  source_.undisturbed = [this](TraceeAddr at) {
    // Code that may change is not for superblocks that are not checked.
    const bool asks = splits_.empty() && !checked_ && facts_.undisturbed && !facts_.may_change(at);
    return asks ? facts_.undisturbed(at) : std::pair<TraceeAddr, TraceeAddr>{};
  };
  source_.decoded = &decoded_;
  source_.joined_at = [this, begins_at = std::move(source_.joined_at)](TraceeAddr at) {
    return (plain_now_ || used_ >= kSavedFrom) && begins_at(at);
  };
}

std::uint32_t SuperblockMaker::longest_block() const {
  if (used_ >= kVeryMuch) return 24;
  if (plain_now_) return kLongestPlain;
  return used_ < kMuch ? 96 : 48;
}

std::optional<std::uint64_t> SuperblockMaker::reserve(bool has_entry) {
  const std::uint64_t before = has_entry ? translate::kIbEntryOffset : 0;
  used_ = (used_ + before + kAlignment - 1) / kAlignment * kAlignment - before;
  if (!has_room_for(1)) return std::nullopt;
  memory_.settle_code(used_);
  return used_;
}

std::variant<translate::Superblock, translate::UntranslatableReason> SuperblockMaker::make(
    TraceeAddr start, std::uint32_t first_exit, std::optional<TraceeAddr> conflict) {
  const auto offset = reserve(conflict.has_value());
  if (!offset) return translate::UntranslatableReason::kNone;
  checked_ = facts_.may_change(start);
  plain_now_ = makes_plain(start);
  if (checked_) facts_.look_again(start);
  keeps_code_ |= checked_ || facts_.made_here(start);
  auto translated = translate::translate(source_, start,
                                         {.address = memory_.code() + *offset,
                                          .table = memory_.table(),
                                          .miss = stubs_.dispatch,
                                          .returned = stubs_.after_handler,
                                          .first_exit = first_exit,
                                          .conflict = conflict,
                                          .inline_system_calls = &inline_calls_,
                                          .checked = checked_,
                                          .saves_memory = plain_now_ || used_ >= kSavedFrom,
                                          .keeps_code = keeps_code_,
                                          .records_values = records_values(),
                                          .records_old_bytes = values_ == ValueDepth::kAll,
                                          .reused = &reused_,
                                          .max_instructions = longest_block()});
  if (auto* made = std::get_if<translate::Superblock>(&translated)) {
    if (keeps_code_ && !checked_ && is_of_files(made->ranges)) made->native.clear();
    std::copy(made->code.begin(), made->code.end(),
              memory_.host_code().begin() + static_cast<std::ptrdiff_t>(*offset));
    used_ = *offset + made->code.size();
    instructions_ += made->instructions;
  }
  return translated;
}

/// A path may lead from a file to code that was made here.
bool SuperblockMaker::is_of_files(const std::vector<translate::Branch>& ranges) const {
  return std::ranges::none_of(ranges, [this](const translate::Branch& range) {
    return facts_.made_here(range.first) || facts_.made_here(range.second - 1);
  });
}

bool SuperblockMaker::is_conditional(TraceeAddr branch) {
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t count = source_.read(branch, bytes);
  return decoded_.decode(branch, std::span{bytes}.first(count)).kind ==
         translate::InsnClass::kConditionalJump;
}

std::vector<TraceeAddr> SuperblockMaker::addresses_in(
    const std::vector<translate::Branch>& ranges) {
  std::vector<TraceeAddr> addresses;
  for (const auto& [begin, end] : ranges) {
    for (TraceeAddr at = begin; at < end;) {
      std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
      const std::size_t count = source_.read(at, bytes);
      const translate::SourceInsn insn = decoded_.decode(at, std::span{bytes}.first(count));
      if (insn.length == 0) break;
      if (insn.kind == translate::InsnClass::kLoadAddress) addresses.push_back(insn.target);
      at = insn.next();
    }
  }
  return addresses;
}

}  // namespace backtrail::tracee::cache
