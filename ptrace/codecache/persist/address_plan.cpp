// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/address_plan.hpp"

#include <algorithm>
#include <array>

namespace backtrail::tracee::cache {
namespace {

/// Address of position-independent programs if nothing is random, and the lowest one otherwise
/// (arch/x86/include/asm/elf.h: ELF_ET_DYN_BASE).
constexpr std::uint64_t kProgramPlace = 0x5555'5555'4000;
/// Everything else is mapped below one of these: the highest one that the kernel's choice exceeds.
/// With the usual 28 random bits (vm.mmap_rnd_bits) that is the first, with 32 it may be any.
/// Programs with sanitizers tolerate mappings only in some ranges and must not be moved out of
/// them: ThreadSanitizer above 0x7e80'0000'0000, newer versions above 0x7a00'0000'0000;
/// MemorySanitizer above its heap, which ends at 0x7400'0000'0000 (compiler-rt: tsan_platform.h,
/// msan_allocator.cpp).
constexpr std::array<std::uint64_t, 4> kTops{0x7ef0'0000'0000, 0x7a10'0000'0000, 0x7410'0000'0000,
                                             0x7010'0000'0000};
/// Room for a dynamic linker and its alignment.
constexpr std::uint64_t kMostLinkerBytes = 64ULL << 20;

std::uint64_t down(std::uint64_t address, std::uint64_t alignment) {
  return address & ~(alignment - 1);
}

/// Returns an image's mappings: those of its file, and anonymous ones directly after them, for
/// variables.
std::span<const MapEntry> mappings_of(std::span<const MapEntry> maps, std::uint64_t begin) {
  const auto first = std::find_if(maps.begin(), maps.end(),
                                  [&](const MapEntry& map) { return map.start == begin; });
  auto last = first;
  while (last != maps.end()) {
    const auto next = last + 1;
    if (next == maps.end()) break;
    const bool same_file = next->inode == first->inode && next->inode != 0 &&
                           next->device_major == first->device_major &&
                           next->device_minor == first->device_minor;
    const bool behind = next->inode == 0 && next->start == last->end &&
                        (next->path.empty() || next->path == "[heap]");
    if (!same_file && !behind) break;
    last = next;
  }
  return first == maps.end() ? std::span<const MapEntry>{} : std::span{first, last + 1};
}

std::uint64_t top_below(std::uint64_t address) {
  const auto top =
      std::find_if(kTops.begin(), kTops.end(), [&](std::uint64_t each) { return each < address; });
  return top == kTops.end() ? 0 : *top;
}

bool is_free(std::span<const MapEntry> maps, const AddressPlan::Move& move) {
  const std::uint64_t end = move.to + (move.end - move.begin);
  return std::all_of(maps.begin(), maps.end(),
                     [&](const MapEntry& map) { return end <= map.start || map.end <= move.to; });
}

/// Adds the moves that bring an image to an address. Returns false if that is not free.
bool add_moves(std::span<const MapEntry> maps, std::span<const MapEntry> image, std::uint64_t to,
               std::vector<AddressPlan::Move>& moves) {
  const std::uint64_t begin = image.front().start;
  const AddressPlan::Move all{begin, image.back().end, to};
  if (!is_free(maps, all)) return false;
  for (const MapEntry& map : image) {
    moves.push_back({map.start, map.end, to + (map.start - begin)});
  }
  return true;
}

}  // namespace

std::optional<AddressPlan> plan_addresses(std::span<const MapEntry> maps,
                                          const LoadedImage& program,
                                          const std::optional<LoadedImage>& linker) {
  AddressPlan plan;
  const auto program_maps = mappings_of(maps, program.begin);
  if (program_maps.empty()) return std::nullopt;
  const auto place = [&](std::span<const MapEntry> image, std::uint64_t alignment,
                         std::uint64_t before, std::uint64_t& distance) {
    const std::uint64_t begin = image.front().start;
    const std::uint64_t size = image.back().end - begin;
    if (size > before) return false;
    const std::uint64_t to = down(before - size, alignment);
    distance = to - begin;
    return distance == 0 || add_moves(maps, image, to, plan.moves);
  };
  // A dynamic linker that was invoked by name lies where others are mapped, too.
  const bool is_high = !linker && program.movable && top_below(program.begin) != 0;
  if (linker) {
    const auto linker_maps = mappings_of(maps, linker->begin);
    if (linker_maps.empty()) return std::nullopt;
    plan.top = top_below(linker->begin);
    if (plan.top == 0) return std::nullopt;
    if (!place(linker_maps, linker->alignment, plan.top, plan.linker_distance)) return std::nullopt;
  } else if (is_high) {
    plan.top = top_below(program.begin);
    if (!place(program_maps, program.alignment, plan.top, plan.program_distance)) {
      return std::nullopt;
    }
  }
  if (program.movable && !is_high) {
    const std::uint64_t to = down(kProgramPlace, program.alignment);
    plan.program_distance = to - program.begin;
    if (plan.program_distance != 0 && !add_moves(maps, program_maps, to, plan.moves)) {
      return std::nullopt;
    }
  }
  if (plan.moves.empty()) return std::nullopt;
  return plan;
}

std::uint64_t planned_top(std::uint64_t begin) {
  const auto top = std::find_if(kTops.begin(), kTops.end(), [=](std::uint64_t each) {
    return begin < each && begin >= each - kMostLinkerBytes;
  });
  return top == kTops.end() ? 0 : *top;
}

bool are_planned(std::uint64_t program, std::uint64_t linker) {
  if (linker != 0 && planned_top(linker) == 0) return false;
  return program <= kProgramPlace || (linker == 0 && planned_top(program) != 0);
}

}  // namespace backtrail::tracee::cache
