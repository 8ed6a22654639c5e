// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State that the recorded threads of one address space share.

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/persist/persistent_store.hpp"
#include "ptrace/codecache/program/code_modules.hpp"
#include "ptrace/codecache/program/code_pages.hpp"
#include "ptrace/codecache/program/executable_map.hpp"
#include "ptrace/codecache/program/protected_pages.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/codecache/translation/code_cache.hpp"
#include "ptrace/os/seccomp_filter.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/remote/trap_guard.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/tracee/restartable_sections.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class CacheSpace {
 public:
  /// Returns the process's space, made if it has none. The thread must be between two instructions.
  /// Errors: those of CacheMemory::create(); kUnsupported if translated code must not run.
  static Result<std::shared_ptr<CacheSpace>> of(Thread& thread,
                                                std::shared_ptr<SourceStatistics> sums,
                                                std::shared_ptr<PersistentStore> store);
  ~CacheSpace();
  CacheSpace(const CacheSpace&) = delete;
  CacheSpace& operator=(const CacheSpace&) = delete;

  /// The process that owns the memory. Others that share it (a vfork's child) are guests.
  [[nodiscard]] const Process& process() const { return process_; }
  void add_guest(Process& guest) { guests_.push_back(&guest); }
  void remove_guest(const Process& guest) { std::erase(guests_, &guest); }
  /// Call when a guest's threads begin to use the space: all threads then stop at the guest's
  /// breakpoints, too.
  void stop_at_breakpoints_of(Process& guest);
  [[nodiscard]] CacheMemory& memory() { return *memory_; }
  [[nodiscard]] CodeCache& code() { return *code_; }

  /// Takes a thread part; returns its index. Error kBusy if all are taken.
  Result<std::size_t> take_slot(Thread& thread);
  void give_slot_back(std::size_t slot);
  [[nodiscard]] bool used() const { return slots_.any(); }
  /// Takes an area for a busy log. Errors: those of CacheMemory::add_area().
  Result<std::size_t> take_area(Thread& thread);
  void give_area_back(std::size_t area) { free_areas_.push_back(area); }

  /// Looks for an rseq critical section that the struct rseq at `area` may name.
  void look_for_section_of(TraceeAddr area);
  /// Call when the debugger has written code.
  void code_written(TraceeAddr begin, TraceeAddr end);
  /// Call before and after executable memory changes in this way.
  void change_mappings(const MappingChange& change);
  /// Call when executable memory may have changed in any way.
  void mappings_changed() { mappings_current_ = false; }
  /// Reads the mappings again if they may have changed, and drops translations that are no longer
  /// valid.
  Result<void> refresh();

  /// Call when a process of the tree may write to /proc/PID/mem: translated code then makes no
  /// writes to files itself.
  void watch_writes();
  /// Call when the kernel may write for the program at any time (io_uring, aio). If it may write to
  /// /proc/PID/mem in that way, all code may change at any time.
  void let_kernel_write();
  /// Call when a file was opened for writing: code in private mappings for which `is_of_it` is true
  /// may change from now on. Returns true if there is such code.
  bool file_may_change(const std::function<bool(const MapEntry&)>& is_of_it);

  /// Translates what the program will probably execute, of all modules whose translations are kept
  /// (cache_space_ahead.cpp). Returns as CodeCache::translate_ahead(). Errors: those of refresh().
  Result<std::size_t> translate_ahead(std::uint64_t most_bytes);
  /// Call before a fork: saves the translations if many of them are not kept yet, because the child
  /// begins with the parent's state.
  void keep_for_child();

  /// Requests that every thread leave translated code, because the memory for translations is used
  /// up.
  void want_room() { room_wanted_ = true; }
  [[nodiscard]] bool room_wanted() const { return room_wanted_; }
  /// Forgets all translations if no thread is inside. Returns true if it did.
  bool make_room();
  /// Notes that a thread enters or has left translated code.
  void set_inside(std::size_t slot, bool inside) { inside_.set(slot, inside); }

  /// Call with a stopped thread's log: retranslates superblocks that run often, where that helps.
  void learn_from_log(std::span<const std::uint32_t> log);

  // Code that may be written at any time is compared each time it is entered. Code pages that are
  // hardly ever written are write-protected instead, until the program writes them.

  /// Call with a stopped thread's log: write-protects code pages that run often.
  void look_for_code_to_protect(Thread& thread, std::span<const std::uint32_t> log);
  [[nodiscard]] const ProtectedPages& protected_pages() const { return protected_; }
  /// A write-protected page that a thread may write for one instruction.
  struct WrittenPage {
    TraceeAddr begin;
    std::array<std::uint8_t, kPageBytes> before{};
  };
  /// Unprotects the page or pages at `at` for the next instruction, which writes there.
  Result<void> let_write(Thread& thread, TraceeAddr at, std::vector<WrittenPage>& written);
  /// Protects the pages again after that instruction. `thread` is null if it has ended.
  void note_written(Thread* thread, std::vector<WrittenPage>& written);
  /// Unprotects all pages in [begin, end). The thread must be stopped outside of system calls.
  Result<void> unprotect(Thread& thread, TraceeAddr begin, TraceeAddr end);
  Result<void> unprotect_all(Thread& thread);
  /// While keep_unprotected(true) is in effect, no page becomes write-protected: the memory is
  /// about to be copied, or other processes write it. Calls nest; each needs one with false.
  void keep_unprotected(bool on) { on ? ++unprotected_ : --unprotected_; }

  /// Disables translated code for the process. The first reason given stays.
  void disable(std::string why);
  [[nodiscard]] bool disabled() const { return !why_disabled_.empty(); }
  [[nodiscard]] const std::string& why_disabled() const { return why_disabled_; }

  /// Gate: while close_gate(true) is in effect, no thread enters translated code, because a thread
  /// installs a seccomp filter. Calls nest; each needs one with false.
  void close_gate(bool on) { on ? ++closes_gate_ : --closes_gate_; }
  [[nodiscard]] bool gate_closed() const { return closes_gate_ != 0; }
  /// Returns true if threads may run translated code now.
  [[nodiscard]] bool is_open() const { return !disabled() && !room_wanted_ && !gate_closed(); }
  [[nodiscard]] bool anybody_inside() const { return inside_.any(); }
  /// Restricts the calls that translated code makes itself to those that these filters allow. The
  /// filters are in force or about to be, and no thread is inside.
  void restrict_calls(const SeccompFilters& filters);

  /// Call when the program's limit on address space has changed. If the recorder's memory counts
  /// against it, calls that may fail for that reason are left to the CPU, so that the memory can be
  /// removed first.
  void note_limit();

  /// While see_opens(true) is in effect, all calls that open files are left to the server, not only
  /// those that may write code. Calls nest; each needs one with false.
  void see_opens(bool on);

  /// A full log raises SIGSEGV. If the program blocks or ignores it, the kernel resets the action;
  /// the following functions know the action and restore it.
  void segv_action_changed() { segv_action_current_ = false; }
  Result<void> learn_segv_action(Thread& thread, std::size_t slot);
  Result<void> repair_segv(Thread& thread, std::size_t slot, std::uint64_t mask);

 private:
  CacheSpace(Process& process, std::shared_ptr<SourceStatistics> sums);
  /// Takes the signal actions that were read when the memory was set up.
  void take_actions();
  /// Sets which calls translated code makes itself.
  void change_calls(const translate::InlineSystemCalls& calls);
  void leave_mapping_calls(translate::InlineSystemCalls& calls) const;
  void begin_keeping(std::shared_ptr<PersistentStore> store);
  /// Returns a seed for a program without translations of its own.
  std::shared_ptr<const PersistentCode> code_of_its_kind(const std::string& place);
  /// Offers the translations saved for this program as a seed for others of its kind.
  void offer_to_its_kind();
  void use_persistent_modules();
  /// Unloads the modules: they are gone or may change from now on.
  void unload(const std::vector<CodeModule>& modules);
  void keep();
  void put_persistent(CodeCache::Keeping when);
  [[nodiscard]] FileIdentity identity_in_store() const;
  /// Returns how many superblocks belong to modules that are, or were, mapped here.
  [[nodiscard]] std::size_t usable_blocks(const PersistentCode& code) const;
  /// Drops translations of [begin, end), whose code has changed or may change, and makes threads
  /// leave them. Unloads the modules in `lost`.
  void drop(TraceeAddr begin, TraceeAddr end, const std::vector<CodeModule>& lost = {});
  void evict_running();
  Result<std::vector<MapEntry>> read_maps();
  Result<ExecutableMap> read_mappings();
  /// Writes the thread's ids as the program sees them, for signals that it sends itself.
  Result<void> write_ids(Thread& thread, ThreadMemory memory);
  void note_way_to_stop(std::size_t slot);
  [[nodiscard]] translate::UntranslatableReason left_to_cpu(TraceeAddr address) const;
  /// Reads code, with breakpoints masked.
  std::size_t read_code(TraceeAddr at, std::span<std::uint8_t> out);
  Result<void> write_protect(Thread& thread, const std::vector<TraceeAddr>& pages);
  [[nodiscard]] bool is_protected(TraceeAddr address) const;
  [[nodiscard]] bool is_protected_page(TraceeAddr address) const;
  /// Returns true if pages of the range that the process wrote change only by its own writes.
  [[nodiscard]] bool keeps_copies(const ExecutableMap::Range& range) const;
  /// Call for a range whose file was open for writing. Returns true if the file is not open any
  /// more, so that written pages are the process's own copies.
  bool let_keep_copies(Thread& thread, const ExecutableMap::Range& range);
  /// Returns true if a page that is due may be write-protected.
  bool is_settled(Thread& thread, TraceeAddr page);
  /// Returns true if every page may change at any time.
  [[nodiscard]] bool all_may_change() const;
  /// Drops translations of the bytes that changed.
  void drop_changed(const WrittenPage& page);
  void look_for_section(TraceeAddr descriptor);
  void leave_section(const RestartableSection& section);

  Process& process_;
  std::vector<Process*> guests_;
  std::shared_ptr<SourceStatistics> sums_;
  UniqueFd maps_;  ///< /proc/PID/maps, kept open from the beginning.
  std::unique_ptr<CacheMemory> memory_;
  translate::InlineSystemCalls inline_calls_{};
  std::unique_ptr<CodeCache> code_;
  CodePages pages_;
  ExecutableMap executable_;
  ExitProfile profile_;
  ProtectedPages protected_;
  /// Ranges of files that were open for writing and no longer are.
  std::vector<ExecutableMap::Range> let_go_;
  int unprotected_ = 0;
  std::bitset<kMaxThreads> slots_;
  std::vector<std::size_t> free_areas_;
  std::optional<bool> same_ids_;    ///< The program sees the same ids as the server.
  bool first_thread_ready_ = true;  ///< The first thread part is as CacheMemory::create() left it.
  std::bitset<kMaxThreads> inside_;
  int closes_gate_ = 0;
  bool stop_by_fault_ = false;
  bool room_wanted_ = false;
  int sees_opens_ = 0;
  KernelSigaction segv_action_;
  bool segv_action_current_ = false;
  bool mappings_current_ = false;
  bool kernel_writes_ = false;
  std::string why_disabled_;
  std::shared_ptr<PersistentStore> store_;  ///< Null: nothing is kept.
  std::string key_;
  std::size_t kept_meanwhile_ = 0;  ///< Number of this process's superblocks saved so far.
  /// A kind of programs: those that load the same libraries, or at least the same dynamic linker.
  struct Kind {
    std::string name;
    std::uint64_t most_bytes = 0;  ///< Limit on the code of a seed for this kind.
  };
  std::vector<Kind> kinds_;                    ///< Kinds of a program of which nothing was kept.
  std::optional<std::uint64_t> own_identity_;  ///< The executable file's.
  CodeModules modules_;
};

}  // namespace backtrail::tracee::cache
