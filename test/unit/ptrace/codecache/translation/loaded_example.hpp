// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A few saved translations of two modules of one file.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "arch/x86/translate/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/persist/packed_pc_map.hpp"
#include "test/unit/ptrace/codecache/translation/loaded_pieces.hpp"

namespace backtrail::tracee::cache {

/// The first module has superblocks at kA and kB, and one with an entry at kB; the second one has a
/// superblock at kC. Exit 0 leads from kA to kB, exit 1 from kA to kC, exit 2 from kC to nowhere.
struct LoadedExample {
  static constexpr arch::x86::translate::Branch kFirst{TraceeAddr{0x40'0000},
                                                       TraceeAddr{0x40'1000}};
  static constexpr arch::x86::translate::Branch kSecond{TraceeAddr{0x40'2000},
                                                        TraceeAddr{0x40'3000}};
  static constexpr TraceeAddr kA{0x40'0100};
  static constexpr TraceeAddr kB{0x40'0200};
  static constexpr TraceeAddr kC{0x40'2100};
  static constexpr TraceeAddr kNowhere{0x40'9000};

  // Code offsets.
  static constexpr std::uint32_t kCodeOfA = 0x100;
  static constexpr std::uint32_t kCodeOfB = 0x140;
  static constexpr std::uint32_t kCodeOfC = 0x180;
  static constexpr std::uint32_t kEntryOfB = 0x200;
  static constexpr std::array<std::uint32_t, 3> kLinks{0x110, 0x120, 0x190};
  static constexpr std::uint64_t kCodeBytesUsed = 0x300;
  static constexpr std::uint8_t kAfterEntry = 32;

  static std::shared_ptr<const PersistentCode> make() {
    namespace translate = arch::x86::translate;
    const std::vector<std::uint8_t> code(kCodeBytesUsed);
    const std::array starts{kA, kB, kC, kB};
    const std::array offsets{kCodeOfA, kCodeOfB, kCodeOfC, kEntryOfB - translate::kIbEntryOffset};
    std::vector<CodeBlock> blocks;
    std::vector<std::uint8_t> pc_map;
    std::vector<decoder::LoggedBlock> logged;
    for (std::uint32_t i = 0; i < starts.size(); ++i) {
      const auto first = static_cast<std::uint32_t>(pc_map.size());
      pack_pc_map(std::array{translate::PcMapEntry{.pc = starts.at(i)}}, starts.at(i), pc_map);
      blocks.push_back({.start = starts.at(i),
                        .offset = offsets.at(i),
                        .logged = i,
                        .first_row = first,
                        .row_bytes = static_cast<std::uint32_t>(pc_map.size()) - first,
                        .size = 48});
      logged.push_back({.start = starts.at(i)});
    }
    blocks.back().set(CodeBlock::kIbEntry);
    blocks.back().after_entry = kAfterEntry;
    const auto exit = [&](std::uint32_t block, TraceeAddr to) {
      return decoder::PackedExit{.to = static_cast<std::int32_t>(to - starts.at(block)),
                                 .block_and_kind = block << decoder::PackedExit::kKindBits};
    };
    const std::array exits{exit(0, kB), exit(0, kC), exit(2, kNowhere)};
    const std::array<decoder::ExitWeight, 3> weights{};
    std::vector<ExitPlace> places;
    places.reserve(kLinks.size());
    for (const std::uint32_t link : kLinks) places.push_back(ExitPlace::of(link, {}));
    const std::array ib_entries{PersistentIbEntry{kB, kEntryOfB}};
    const std::array translations{PersistentTranslation{kA, kCodeOfA},
                                  PersistentTranslation{kB, kCodeOfB},
                                  PersistentTranslation{kC, kCodeOfC}};
    const std::array<std::uint32_t, 1> crossing{1};
    return loaded_pieces({.modules = {},
                          .code = {code},
                          .blocks = {blocks},
                          .pc_map = {pc_map},
                          .logged = {logged},
                          .branches = {},
                          .exits = {exits},
                          .weights = {weights},
                          .places = {places},
                          .ib_entries = {ib_entries},
                          .translations = {translations},
                          .crossing = {crossing},
                          .values = {},
                          .value_offsets = {},
                          .first_values = {},
                          .exit_values = {}},
                         true);
  }
};

}  // namespace backtrail::tracee::cache
