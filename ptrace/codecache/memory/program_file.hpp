// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A nameless file that both the program and the server can map.

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
class Process;
class RemoteCalls;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Memory for a file name in the program, which system calls require. It is borrowed from the
/// stack, below the red zone.
class BorrowedName {
 public:
  /// Error kUnreadable if the stack cannot be used.
  static Result<BorrowedName> of(Thread& thread);
  BorrowedName(BorrowedName&& other) noexcept;
  ~BorrowedName();
  BorrowedName(const BorrowedName&) = delete;
  BorrowedName& operator=(const BorrowedName&) = delete;
  BorrowedName& operator=(BorrowedName&&) = delete;
  [[nodiscard]] TraceeAddr at() const { return at_; }
  /// Writes the name, which must be shorter than kBytes. Errors: those of Process::write_data().
  [[nodiscard]] Result<void> set(std::string_view name) const;

  static constexpr std::size_t kBytes = 48;

 private:
  using Bytes = std::array<std::uint8_t, kBytes>;
  BorrowedName(Process& process, TraceeAddr at, const Bytes& saved)
      : process_{&process}, at_{at}, saved_{saved} {}

  Process* process_;
  TraceeAddr at_;
  Bytes saved_;
};

/// Makes a memfd of this size for the recorder, which nobody can make shorter. Errors: the errnos
/// of the calls.
[[nodiscard]] Result<UniqueFd> make_memfd(std::uint64_t bytes);

/// Returns what tells a memfd from others, which are all on one device; 0 if it is not open.
[[nodiscard]] std::uint64_t inode_of(int fd);

class ProgramFile {
 public:
  /// The program makes the file; if its filters forbid that, the server makes it and the program
  /// opens it. Errors: those of the calls; nothing remains then.
  static Result<ProgramFile> make(Process& process, RemoteCalls& remote, const BorrowedName& name,
                                  std::uint64_t bytes);
  /// Lets the program open a nameless file of the server's for reading and writing; returns its
  /// descriptor. A process that may not inspect the server, or that sees other processes than the
  /// server does, cannot. Errors: kUnsupported (the program's /proc is another one), those of the
  /// call.
  static Result<std::uint64_t> open_in(Process& process, RemoteCalls& remote,
                                       const BorrowedName& name, int fd);
  /// The descriptors of the server and of the program. The caller must close the latter.
  [[nodiscard]] int here() const { return here_.get(); }
  [[nodiscard]] UniqueFd take_here() { return std::move(here_); }
  [[nodiscard]] std::uint64_t there() const { return there_; }

 private:
  static Result<ProgramFile> make_here(Process& process, RemoteCalls& remote,
                                       const BorrowedName& name, std::uint64_t bytes);
  ProgramFile(UniqueFd here, std::uint64_t there) : here_{std::move(here)}, there_{there} {}

  UniqueFd here_;
  std::uint64_t there_;
};

}  // namespace backtrail::tracee::cache
