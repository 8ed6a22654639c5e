// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// libthread_db: pthread_t handles and addresses of thread-local variables.
///
/// The library calls C functions (ps_pdread and others, proc_service.h) that it finds in the
/// executable; bt_ptrace exports them from every program that links it. Without the library, or for
/// a program that it does not fit, only this feature is missing.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "arch/base/result.hpp"
#include "arch/cpu/registers.hpp"
#include "arch/isa.hpp"
#include "ptrace/tracee/tracee_memory.hpp"

namespace backtrail::tracee {

/// A process as libthread_db sees it.
struct ThreadDbHost {
  pid_t pid = 0;
  arch::Isa isa = arch::Isa::kAmd64;
  /// Borrowed; must outlive the ThreadDb.
  TraceeMemory* memory = nullptr;
  /// Returns the registers of a stopped thread.
  std::function<Result<arch::cpu::UserRegs>(pid_t tid)> registers;
};

/// One process's thread_db. All calls require the threads concerned to be stopped.
class ThreadDb {
 public:
  /// "$sdir" is the system's library folder; other entries are folders.
  static constexpr std::string_view kDefaultSearchPath = "$sdir";

  /// Returns the program's symbols that libthread_db needs, beginning with one that every threaded
  /// program has. Empty if there is no library.
  static std::vector<std::string> wanted_symbols(std::string_view search_path = kDefaultSearchPath);

  /// Loads the first library of the colon-separated `search_path` that fits the program. `symbols`
  /// has the known addresses of wanted_symbols(). Errors: kUnsupported (no library, or none that
  /// fits), kNotFound (not a threaded program, or its C library is not mapped yet).
  static Result<std::unique_ptr<ThreadDb>> open(ThreadDbHost host,
                                                std::map<std::string, TraceeAddr> symbols,
                                                std::string_view search_path = kDefaultSearchPath);
  ~ThreadDb();
  ThreadDb(const ThreadDb&) = delete;
  ThreadDb& operator=(const ThreadDb&) = delete;

  /// Returns the bytes of the thread's pthread_t. Error kNotFound while it has none.
  Result<std::vector<std::uint8_t>> handle(pid_t tid);
  /// Returns the address of a thread-local variable: `offset` bytes into the TLS block of the
  /// object whose link_map is at `link_map`. Errors: kNotFound (the thread has no such block yet),
  /// kUnsupported.
  Result<TraceeAddr> tls_address(pid_t tid, std::uint64_t offset, TraceeAddr link_map);
  /// The library file in use.
  [[nodiscard]] const std::string& library() const;

 private:
  struct Impl;
  explicit ThreadDb(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace backtrail::tracee
