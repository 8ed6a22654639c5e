#pragma once
/// @file
/// A file without a name that a program and we can map.

#include <array>
#include <cstdint>
#include <string_view>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
class Process;
class RemoteCalls;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// System calls that name a file need it in the program's memory: its stack, below the red zone,
/// lends some.
class BorrowedName {
 public:
  /// Error kUnreadable: the stack cannot be used.
  static Result<BorrowedName> of(Thread& thread);
  BorrowedName(BorrowedName&& other) noexcept;
  ~BorrowedName();
  BorrowedName(const BorrowedName&) = delete;
  BorrowedName& operator=(const BorrowedName&) = delete;
  BorrowedName& operator=(BorrowedName&&) = delete;
  [[nodiscard]] TraceeAddr at() const { return at_; }
  /// Shorter than kBytes. Errors: Process::write_data().
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

class ProgramFile {
 public:
  /// Made by the program, or, where its filters forbid that, by us and opened by it. Errors of the
  /// calls made; nothing is left behind then.
  static Result<ProgramFile> make(Process& process, RemoteCalls& remote, const BorrowedName& name,
                                  std::uint64_t bytes);
  /// The server's descriptor, and the program's own, which is the caller's to close.
  [[nodiscard]] int here() const { return here_.get(); }
  [[nodiscard]] std::uint64_t there() const { return there_; }

 private:
  static Result<ProgramFile> make_here(RemoteCalls& remote, const BorrowedName& name,
                                       std::uint64_t bytes);
  ProgramFile(UniqueFd here, std::uint64_t there) : here_{std::move(here)}, there_{there} {}

  UniqueFd here_;
  std::uint64_t there_;
};

}  // namespace backtrail::tracee::cache
