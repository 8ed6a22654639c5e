// SPDX-License-Identifier: Apache-2.0
#include "judged_trails.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <unordered_map>

#include <fmt/format.h>

namespace backtrail::decoder::values {
namespace {

using Kind = TrailPart::Kind;

constexpr unsigned kByteBits = 8;
constexpr unsigned kRegisterBits = 64;

/// Bytes of memory that are followed from a position on.
struct Followed {
  std::uint64_t address;
  unsigned bytes;
  std::size_t position;
};

class Judge {
 public:
  Judge(TruthRun& run, HistoryLimits limits)
      : run_{run}, count_{run.steps().size()}, history_{history_of(run, limits)} {
    for (std::size_t i = 0; i < run_.samples().size(); ++i) {
      const MemorySample& sample = run_.samples()[i];
      for (std::uint64_t at = sample.address / kLine; at <= (sample.address + sample.size) / kLine;
           ++at) {
        lines_[at].push_back(i);
      }
    }
  }

  TrailJudgement judge(std::size_t trails) {
    std::mt19937 random{1};
    const auto below = [&](std::size_t most) {
      return std::uniform_int_distribution<std::size_t>{0, most - 1}(random);
    };
    constexpr std::array<unsigned, 4> kWidths{8, 16, 32, 64};
    constexpr std::array<unsigned, 6> kSizes{1, 2, 4, 8, 12, 32};
    for (std::size_t i = 0; i < trails; ++i) {
      // Half of them near the end, where most is known.
      const std::size_t reach = i % 2 == 0 ? std::min<std::size_t>(count_, 3000) : count_;
      const std::size_t position = count_ - below(reach + 1);
      reg(position, static_cast<Slot>(below(cpu::kGeneralSlots)), kWidths[below(kWidths.size())]);
      const auto& samples = run_.samples();
      const auto first = std::ranges::lower_bound(samples, count_ - reach, {},
                                                  [](const MemorySample& s) { return s.position; });
      if (first == samples.end()) continue;
      const MemorySample& sample =
          *(first +
            static_cast<std::ptrdiff_t>(below(static_cast<std::size_t>(samples.end() - first))));
      const std::uint64_t address = sample.address + below(sample.size);
      memory({address, kSizes[below(kSizes.size())], sample.position});
    }
    return std::move(result_);
  }

 private:
  static constexpr std::uint64_t kLine = 64;

  void wrong(std::string text) {
    ++result_.wrong_count;
    if (result_.wrong.size() < 20) result_.wrong.push_back(std::move(text));
  }

  void reg(std::size_t position, Slot slot, unsigned bits) {
    const auto trail = trail_of_register(history_, position, slot, bits);
    if (trail.empty()) return wrong("a trail without parts");
    const std::string what = fmt::format("{} bits of slot {} before step {}", bits, slot, position);
    const TrailPart& part = trail.front();
    const bool has_value = part.kind != Kind::kTooLong && part.kind != Kind::kUnknownAddress;
    if (has_value) same(what, part.value, part.bits, run_.reg_at(position, slot), bits);
    // Copies between registers are no parts: afterwards some register has the value.
    const bool is_before = part.kind == Kind::kSignal || part.kind == Kind::kBeginning ||
                           part.kind == Kind::kHalfDone || part.kind == Kind::kTooLong;
    const std::size_t from = part.step + (is_before ? 0 : 1);
    const std::uint64_t truth = run_.reg_at(position, slot);
    const bool is_there = is_in_register(from, truth, bits);
    ++result_.compared;
    if (!is_there) {
      wrong(fmt::format("{}: {:#x} was in no register after step {} (kind {}) at {}", what, truth,
                        part.step, static_cast<int>(part.kind),
                        from > 0 ? run_.steps()[from - 1].pc : TraceeAddr{}));
    }
    follow(what, trail, std::nullopt);
  }

  /// Returns true if the low bits of a value are somewhere in a register.
  [[nodiscard]] bool is_in_register(std::size_t position, std::uint64_t truth,
                                    unsigned bits) const {
    const std::uint64_t mask = cpu::low_bits(bits);
    for (Slot slot = 0; slot < cpu::kSlotCount; ++slot) {
      const std::uint64_t value = run_.reg_at(position, slot);
      for (unsigned shift = 0; shift + bits <= 64U; ++shift) {
        if ((((value >> shift) ^ truth) & mask) == 0) return true;
      }
    }
    return false;
  }

  void memory(const Followed& where) {
    const auto trail =
        trail_of_memory(history_, where.position, TraceeAddr{where.address}, where.bytes);
    const std::string what =
        fmt::format("{} bytes at {:#x} before step {}", where.bytes, where.address, where.position);
    if (trail.empty()) return wrong("a trail without parts");
    follow(what, trail, where);
  }

  /// Two values of which the low bits are one.
  void same(const std::string& what, const Known& value, unsigned bits, std::uint64_t truth,
            unsigned truth_bits) {
    ++result_.compared;
    const std::uint64_t mask = value.mask & cpu::low_bits(std::min(bits, truth_bits));
    if (((value.value ^ truth) & mask) == 0) return;
    wrong(fmt::format("{}: {:#x} of {:#x}, truth {:#x}", what, value.value, value.mask, truth));
  }

  /// Checks a trail part by part.
  void follow(const std::string& what, const std::vector<TrailPart>& trail,
              std::optional<Followed> memory) {
    std::size_t position = memory ? memory->position : count_;
    for (std::size_t i = 0; i < trail.size(); ++i) {
      const TrailPart& part = trail[i];
      const std::string here = fmt::format("{}, part {} of kind {}, step {}", what, i,
                                           static_cast<int>(part.kind), part.step);
      if (part.step > position) wrong(here + ": later than the part before it");
      position = part.step;
      if (memory) unchanged(here, *memory, part);
      if (i > 0) handed_on(here, trail[i - 1], part);
      memory.reset();
      if (part.kind != Kind::kLoaded) continue;
      memory = Followed{part.address, part.bits / kByteBits, part.step};
      truth_of(here, *memory, part.step, part.step + 1, &part.value);
    }
  }

  /// Checks that the bytes were not written after `part`, and that it wrote what they are.
  void unchanged(const std::string& what, const Followed& memory, const TrailPart& part) {
    const bool is_after = part.kind == Kind::kSignal || part.kind == Kind::kBeginning ||
                          part.kind == Kind::kOthers || part.kind == Kind::kHalfDone ||
                          part.kind == Kind::kTooLong;
    const std::size_t from = part.step + (is_after ? 0 : 1);
    truth_of(what, memory, from, memory.position + 1, nullptr);
    if (part.kind != Kind::kStored) return;
    const Followed stored{part.address, part.bits / kByteBits, memory.position};
    const bool is_part = stored.address >= memory.address &&
                         stored.address + stored.bytes <= memory.address + memory.bytes;
    if (!is_part) wrong(what + ": stored elsewhere");
    if (part.is_partial != (stored.bytes < memory.bytes)) wrong(what + ": partial or not");
    truth_of(what, stored, from, memory.position + 1, &part.value);
  }

  /// Compares the samples of the bytes at the positions [from, to) with each other, and with a
  /// value.
  void truth_of(const std::string& what, const Followed& memory, std::size_t from, std::size_t to,
                const Known* value) {
    std::vector<int> seen(memory.bytes, -1);
    for (unsigned i = 0; value != nullptr && i < memory.bytes && i < sizeof(value->value); ++i) {
      if ((value->mask >> (kByteBits * i) & 0xff) != 0xff) continue;
      seen[i] = static_cast<int>(value->value >> (kByteBits * i) & 0xff);
    }
    for (std::uint64_t line = memory.address / kLine;
         line <= (memory.address + memory.bytes) / kLine; ++line) {
      const auto found = lines_.find(line);
      if (found == lines_.end()) continue;
      auto at = std::ranges::lower_bound(found->second, from, {}, [this](std::size_t sample) {
        return run_.samples()[sample].position;
      });
      for (; at != found->second.end() && run_.samples()[*at].position < to; ++at) {
        if (!agree(run_.samples()[*at], memory, seen)) {
          return wrong(fmt::format("{}: a byte of {:#x} is another one before step {}", what,
                                   memory.address, run_.samples()[*at].position));
        }
      }
    }
  }

  bool agree(const MemorySample& sample, const Followed& memory, std::vector<int>& seen) {
    for (unsigned i = 0; i < memory.bytes; ++i) {
      const std::uint64_t at = memory.address + i;
      if (at < sample.address || at >= sample.address + sample.size) continue;
      const int byte = run_.bytes(sample)[at - sample.address];
      ++result_.compared;
      if (seen[i] >= 0 && seen[i] != byte) return false;
      seen[i] = byte;
    }
    return true;
  }

  /// Checks that a part gives what the one after it used.
  void handed_on(const std::string& what, const TrailPart& later, const TrailPart& part) {
    const bool has_value = part.kind == Kind::kStored || part.kind == Kind::kLoaded ||
                           part.kind == Kind::kComputed || part.kind == Kind::kSeveral ||
                           part.kind == Kind::kConstant || part.kind == Kind::kCallResult;
    if (!has_value) return;
    if (later.kind == Kind::kComputed && later.followed >= later.inputs.size()) {
      return wrong(what + ": follows no input");
    }
    Known used = later.value;
    unsigned bits = later.bits;
    if (later.kind == Kind::kComputed) {
      used = later.inputs[later.followed].value;
      bits = later.inputs[later.followed].bits;
    } else if (part.kind == Kind::kStored) {
      // A store may have made some of the bytes that were loaded.
      const auto before = static_cast<unsigned>(part.address - later.address) * kByteBits;
      if (later.kind != Kind::kLoaded || before >= bits) return wrong(what + ": stored elsewhere");
      bits -= before;
      used = before < kRegisterBits ? Known{used.value >> before, used.mask >> before} : Known{};
    }
    ++result_.compared;
    const std::uint64_t mask = used.mask & part.value.mask >> part.used_from &
                               cpu::low_bits(std::min(bits, part.bits - part.used_from));
    if (((used.value ^ part.value.value >> part.used_from) & mask) == 0) return;
    wrong(fmt::format("{}: {:#x} is not what was used", what, part.value.value));
  }

  TruthRun& run_;
  std::size_t count_;
  ValueHistory history_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> lines_;  ///< Samples by place.
  TrailJudgement result_;
};

}  // namespace

TrailJudgement judge_trails(TruthRun& run, HistoryLimits limits, std::size_t trails) {
  return Judge{run, limits}.judge(trails);
}

}  // namespace backtrail::decoder::values
