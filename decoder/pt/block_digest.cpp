// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/block_digest.hpp"

#include <utility>

namespace backtrail::decoder {
namespace {

constexpr unsigned kFirstSlotBits = 8;

bool comes_back(arch::InsnKind kind) {
  return kind == arch::InsnKind::kSystemCall || kind == arch::InsnKind::kFarTransfer;
}

BlockExit exit_of(const arch::InsnFacts& facts, TraceeAddr behind) {
  switch (facts.kind) {
    case arch::InsnKind::kOther:
      return BlockExit::kNone;
    case arch::InsnKind::kConditionalJump:
      return BlockExit::kConditional;
    case arch::InsnKind::kJump:
      return BlockExit::kDirect;
    case arch::InsnKind::kCall:
      return facts.target == behind ? BlockExit::kNextCall : BlockExit::kDirectCall;
    case arch::InsnKind::kIndirectCall:
      return BlockExit::kIndirectCall;
    case arch::InsnKind::kReturn:
      return BlockExit::kReturn;
    case arch::InsnKind::kIndirectJump:
    case arch::InsnKind::kSystemCall:
    case arch::InsnKind::kFarTransfer:
      return BlockExit::kIndirect;
  }
  return BlockExit::kNone;
}

}  // namespace

Passage walk_passage(InsnCache& insns, TraceeAddr begin, TraceeAddr stop) {
  Passage passage;
  passage.walk = walk_block(insns, begin, stop, [&](TraceeAddr pc, const arch::InsnFacts& facts) {
    if (facts.kind == arch::InsnKind::kConditionalJump) {
      ++passage.not_taken;
    } else if (comes_back(facts.kind)) {
      passage.resumptions.push_back({passage.not_taken, pc + facts.length});
      passage.not_taken = 0;
    }
  });
  return passage;
}

BlockDigests::BlockDigests(InsnCache& insns, unsigned max_slot_bits)
    : insns_{insns}, max_slot_bits_{max_slot_bits}, generation_{insns.generation()} {
  forget();
}

void BlockDigests::refresh() {
  if (generation_ == insns_.generation()) return;
  generation_ = insns_.generation();
  forget();
}

void BlockDigests::forget() {
  slots_.assign(std::size_t{1} << kFirstSlotBits, {});
  mask_ = slots_.size() - 1;
  shift_ = 64 - kFirstSlotBits;
  used_ = 0;
  resumptions_.clear();
}

const BlockDigest* BlockDigests::make(TraceeAddr begin, TraceeAddr last) {
  Passage passage = walk_passage(insns_, begin, last);
  if (!passage.walk.reached()) return nullptr;
  const arch::InsnFacts& facts = insns_.at(last);
  if (!facts.known()) return nullptr;

  BlockDigest digest;
  digest.begin = begin;
  digest.span = static_cast<std::uint32_t>(last - begin);
  digest.target = facts.target;
  digest.not_taken = passage.not_taken;
  digest.exit = exit_of(facts, last + facts.length);
  digest.exit_length = facts.length;
  const bool full = used_ >= slots_.size() / 2;
  if (full && slots_.size() >= std::size_t{1} << max_slot_bits_) forget();
  if (!passage.resumptions.empty()) {
    resumptions_.push_back(std::move(passage.resumptions));
    digest.resumptions = static_cast<std::uint32_t>(resumptions_.size());
  }
  return &insert(digest);
}

const BlockDigest& BlockDigests::insert(const BlockDigest& digest) {
  if (used_ >= slots_.size() / 2) {
    const std::vector<BlockDigest> old = std::exchange(slots_, {});
    slots_.resize(old.size() * 2);
    mask_ = slots_.size() - 1;
    --shift_;
    used_ = 0;
    for (const BlockDigest& moved : old) {
      if (moved.exit_length != 0) insert(moved);
    }
  }
  std::size_t slot = slot_of(digest.begin, digest.span);
  while (slots_[slot & mask_].exit_length != 0) ++slot;
  ++used_;
  return slots_[slot & mask_] = digest;
}

}  // namespace backtrail::decoder
