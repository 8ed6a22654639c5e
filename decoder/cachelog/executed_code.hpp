// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells what code a thread executed, of code that may change.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "decoder/trace/record.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::decoder {

/// Follows a thread through its log. Superblocks of code that may change keep their bytes
/// (BlockCode), and are what was executed, whatever the program's memory held by then. Their bytes
/// are told where they differ from what was told of these addresses before.
///
/// So are the bytes of instructions that were stepped. All other code was executed as it was in
/// memory, by the CPU itself or in superblocks without bytes. If something was told of its
/// addresses, that ends there.
///
/// A place is a number of records, as ValueFact::record while a log is decoded. Within a block of
/// straight-line code, between two records, addresses ascend. So what is told of addresses that
/// come later in the block says nothing of what was executed before in it.
class ExecutedCode {
 public:
  /// Borrows `exits`.
  explicit ExecutedCode(const ExitTable& exits) : exits_{exits} {}

  /// A superblock was left by an exit. `place` is that of its start.
  void leave(const LoggedExit& exit, std::uint64_t place);
  /// The thread executed a superblock's code after `passed` of its branches: up to `end`, or to the
  /// superblock's next branch, which is passed to take(), if that is nullopt.
  void execute(std::uint32_t block, std::size_t passed, std::optional<TraceeAddr> end,
               std::uint64_t place);
  /// The CPU executed the instruction at `pc`, which had these bytes. If it is a branch, take()
  /// comes next.
  void step(TraceeAddr pc, std::span<const std::uint8_t> bytes, std::uint64_t place);
  /// The thread is at `at`, and has executed the straight-line code up to there.
  void arrive(TraceeAddr at, std::uint64_t place);
  /// The thread took a branch, or control moved otherwise. `place` is that before the record.
  void take(const Record& record, std::uint64_t place);
  /// Log entries are missing here.
  void lose() { at_.reset(); }
  /// The thread may execute more from here on before the next call.
  void pause(std::uint64_t place);
  /// A consumer may begin to read now: it has none of the facts.
  void expect_reader();
  /// Appends the facts of all calls since this one was called last, and forgets them.
  void hand_on(std::vector<ValueFact>& out) {
    out.insert(out.end(), facts_.begin(), facts_.end());
    facts_.clear();
  }

 private:
  /// Bytes at a multiple of eight, as they were told.
  struct Granule {
    std::uint64_t value = 0;
    std::uint64_t mask = 0;
  };
  /// The state of told_ when a superblock's code was last found to agree with it, and how many
  /// instructions of it.
  struct Seen {
    std::uint64_t version = 0;
    std::uint32_t instructions = 0;
  };

  void tell(const BlockCode::Segment& segment, std::uint64_t place);
  void tell_byte_group(std::uint64_t granule, const Granule& bytes, std::uint64_t place);
  /// The code at [begin, end) is not known from here on.
  void drop(TraceeAddr begin, TraceeAddr end, std::uint64_t place);
  void drop_all(std::uint64_t place);
  /// Call at the beginning of a superblock or a stepped instruction: everything is told anew from
  /// time to time.
  void begin_anew(std::uint64_t place);
  /// Drops what the CPU executed in a straight line.
  void drop_line(TraceeAddr begin, TraceeAddr end, std::uint64_t place);
  /// Tells or drops the code of a superblock that was executed until an exit.
  void see(const LoggedExit& exit, std::uint64_t place);

  const ExitTable& exits_;
  std::vector<ValueFact> facts_;
  std::map<std::uint64_t, Granule> told_;  ///< By address.
  std::uint64_t version_ = 1;              ///< Changes with told_.
  std::vector<Seen> seen_;                 ///< By superblock.
  std::optional<TraceeAddr> at_;           ///< Where the thread is; nullopt if unknown.
  bool begins_line_ = false;               ///< No instruction was executed since the newest record.
  /// Code that was told for the line, up to a branch in it: [begin, end).
  std::pair<TraceeAddr, TraceeAddr> covered_;
  /// Superblocks and stepped instructions since everything was told anew.
  std::uint64_t since_all_ = 0;
};

}  // namespace backtrail::decoder
