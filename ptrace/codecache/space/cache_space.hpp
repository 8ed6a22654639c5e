// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State that the recorded threads of one address space share.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arch/base/page.hpp"
#include "arch/base/result.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/persist/persistent_store.hpp"
#include "ptrace/codecache/program/code_pages.hpp"
#include "ptrace/codecache/program/executable_map.hpp"
#include "ptrace/codecache/space/constant_ranges.hpp"
#include "ptrace/codecache/space/inline_calls.hpp"
#include "ptrace/codecache/space/kept_translations.hpp"
#include "ptrace/codecache/space/page_protection.hpp"
#include "ptrace/codecache/space/segv_action.hpp"
#include "ptrace/codecache/space/thread_parts.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/codecache/translation/code_cache.hpp"
#include "ptrace/os/open_file.hpp"
#include "ptrace/os/seccomp_filter.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/tracee/restartable_sections.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

struct InheritedCode;

class CacheSpace {
 public:
  struct Config {
    std::shared_ptr<SourceStatistics> sums;
    std::shared_ptr<PersistentStore> store = {};  ///< May be null.
    std::shared_ptr<SpareMemory> spare = {};      ///< May be null.
    ValueDepth values = ValueDepth::kFree;
  };
  /// Returns the process's space, made if it has none. The thread must be between two instructions.
  /// Errors: those of CacheMemory::create(); kUnsupported if translated code must not run.
  static Result<std::shared_ptr<CacheSpace>> of(Thread& thread, const Config& config);
  ~CacheSpace();
  CacheSpace(const CacheSpace&) = delete;
  CacheSpace& operator=(const CacheSpace&) = delete;

  /// The process that owns the memory. Others that share it (a vfork's child) are guests.
  [[nodiscard]] const Process& process() const { return process_; }
  /// Keeps the object of process(), which has ended, for as long as guests use the space.
  void keep_process(std::unique_ptr<Process> ended);
  void add_guest(Process& guest) { guests_.push_back(&guest); }
  void remove_guest(const Process& guest) { std::erase(guests_, &guest); }
  /// Call when a guest's threads begin to use the space: all threads then stop at the guest's
  /// breakpoints, too.
  void stop_at_breakpoints_of(Process& guest);
  [[nodiscard]] CacheMemory& memory() { return *memory_; }
  [[nodiscard]] CodeCache& code() { return code_; }
  [[nodiscard]] ThreadParts& threads() { return threads_; }
  [[nodiscard]] PageProtection& protection() { return protection_; }
  [[nodiscard]] SegvAction& segv_action() { return segv_action_; }
  [[nodiscard]] KeptTranslations& kept() { return kept_; }

  /// Looks for an rseq critical section that the struct rseq at `area` may name.
  void look_for_section_of(TraceeAddr area);
  /// Call when the debugger has written code.
  void code_written(TraceeAddr begin, TraceeAddr end);
  /// Call before and after executable memory changes in this way.
  void change_mappings(const MappingChange& change);
  /// Returns true if superblocks that are made of the code at an address keep its bytes
  /// (decoder::BlockCode), and there is such a superblock anywhere.
  [[nodiscard]] bool keeps_code(TraceeAddr at) const;
  /// Executable memory whose mappings changed while several threads or processes could execute it:
  /// what one of them executed before may have been other code than there is now.
  struct ReplacedCode {
    bool of_files = false;   ///< Code in files, where there is code now, too.
    bool made_here = false;  ///< Code in no file.
  };
  [[nodiscard]] ReplacedCode replaced_code() const;
  /// Returns what a child has that the process's only thread is about to fork; null if that is not
  /// known for sure.
  [[nodiscard]] std::shared_ptr<const InheritedCode> code_of_child() const;
  /// Memory that changes with mappings alone.
  [[nodiscard]] const ConstantRanges& constant() const { return constant_; }
  /// Call when executable memory may have changed in any way.
  void mappings_changed() { mappings_current_ = false; }
  /// Reads the mappings again if they may have changed, and drops translations that are no longer
  /// valid. The other spaces in the memory do the same, so that their inline calls leave new code
  /// alone.
  Result<void> refresh();
  /// Call when a thread goes to an address that is not known to be executable. Translated code maps
  /// code without a stop, so this reads the mappings again. Returns true if the address is
  /// executable after all.
  bool finds_new_code(TraceeAddr address);

  /// Call when a process of the tree may write to /proc/PID/mem: translated code then makes no
  /// writes to files itself.
  void watch_writes();
  /// Call when the kernel may write for the program at any time (io_uring, aio). If it may write to
  /// /proc/PID/mem in that way, all code may change at any time.
  void let_kernel_write();
  /// Call when a file was opened for writing: code in private mappings for which `is_of_it` is true
  /// may change from now on. Returns true if there is such code.
  bool file_may_change(const std::function<bool(const MapEntry&)>& is_of_it);

  /// Translates what the program will probably execute, of all modules whose translations are kept.
  /// Returns as CodeCache::translate_ahead(). Errors: those of refresh().
  Result<std::size_t> translate_ahead(std::uint64_t most_bytes);

  /// Reads code as it was translated; 0 where it may have changed since.
  std::size_t read_unchanged(TraceeAddr at, std::span<std::uint8_t> out);

  /// Requests that every thread leave translated code, because the memory for translations is used
  /// up.
  void want_room() { room_wanted_ = true; }
  [[nodiscard]] bool room_wanted() const { return room_wanted_; }
  /// Forgets all translations if no thread is inside. Returns true if it did.
  bool make_room();

  /// Call with a stopped thread's log: retranslates superblocks that run often, where that helps.
  void learn_from_log(std::span<const std::uint32_t> log);
  /// Call with a stopped thread's log: write-protects code pages that run often.
  void look_for_code_to_protect(Thread& thread, std::span<const std::uint32_t> log);

  /// Disables translated code for the process. The first reason given stays.
  void disable(std::string why);
  [[nodiscard]] bool disabled() const { return !why_disabled_.empty(); }
  [[nodiscard]] const std::string& why_disabled() const { return why_disabled_; }

  /// Requests, for a disabled space, that the memory be removed.
  void give_up_memory() { is_given_up_ = true; }
  [[nodiscard]] bool is_given_up() const { return is_given_up_; }
  /// Returns true the first time: the user is told once what the program does to the memory.
  [[nodiscard]] bool begins_to_warn() { return !std::exchange(has_warned_, true); }

  /// Gate: while close_gate(true) is in effect, no thread enters translated code, because a thread
  /// installs a seccomp filter. Calls nest; each needs one with false.
  void close_gate(bool on) { on ? ++closes_gate_ : --closes_gate_; }
  [[nodiscard]] bool gate_closed() const { return closes_gate_ != 0; }
  /// Returns true if refresh() has nothing to do.
  [[nodiscard]] bool is_current() const { return mappings_current_; }
  /// Returns true if threads may run translated code now.
  [[nodiscard]] bool is_open() const { return !disabled() && !room_wanted_ && !gate_closed(); }
  /// Restricts the calls that translated code makes itself to those that these filters allow. The
  /// filters are in force or about to be, and no thread is inside.
  void restrict_calls(const SeccompFilters& filters);

  /// Call when the program's limit on address space has changed (InlineCalls::note_limit()).
  void note_limit();

 private:
  CacheSpace(Process& process, std::shared_ptr<SourceStatistics> sums,
             std::unique_ptr<CacheMemory> memory);
  [[nodiscard]] translate::CodeSource code_source();
  [[nodiscard]] CodeCache::CodeFacts code_facts();
  [[nodiscard]] PageProtection::Hooks protection_hooks();
  /// Call when the inline calls have changed.
  void renew_calls();
  /// Returns true if the process's first thread is not the only one that executes its memory.
  [[nodiscard]] bool has_company() const;
  void note_replaced(TraceeAddr begin, TraceeAddr end);
  void note_patched(TraceeAddr begin, TraceeAddr end);
  void change_mappings(TraceeAddr begin, TraceeAddr end, const MappingChange& how);
  /// Returns true if the program may have patched the code of a file at this address.
  [[nodiscard]] bool is_patched(TraceeAddr at) const {
    return !patched_.empty() && patched_.contains(page_begin(at.value()));
  }
  /// Drops translations of [begin, end), whose code has changed or may change, and makes threads
  /// leave them.
  void drop(TraceeAddr begin, TraceeAddr end);
  /// Unloads modules there, too. Returns true if there was one.
  bool drop_modules(TraceeAddr begin, TraceeAddr end);
  void evict_running();
  Result<std::vector<MapEntry>> read_maps();
  /// Facts of the process, which has not run since they were read. Missing ones are read if they
  /// are needed.
  struct Seen {
    std::optional<std::vector<OpenFile>> open_files;  ///< Files that it has open for writing.
    std::optional<std::vector<MapEntry>> maps;        ///< With the recorder's code.
  };
  Result<void> refresh(Seen seen);
  void use(ExecutableMap now, const CodeModules* parents);
  /// As refresh(), without the other spaces.
  Result<void> refresh_alone(Seen seen);
  /// Call for a new space: what the kernel may do to the memory it may do for all who use it.
  void learn_from_others();
  Result<ExecutableMap> read_mappings(Seen seen);
  [[nodiscard]] translate::UntranslatableReason left_to_cpu(TraceeAddr address) const;
  [[nodiscard]] std::pair<TraceeAddr, TraceeAddr> undisturbed(TraceeAddr at) const;
  /// Reads code, with breakpoints masked.
  std::size_t read_code(TraceeAddr at, std::span<std::uint8_t> out);
  /// Returns true if every page may change at any time.
  [[nodiscard]] bool all_may_change() const;
  bool look_for_section(TraceeAddr descriptor);
  void leave_section(const RestartableSection& section);

  std::unique_ptr<Process> ended_;  ///< process_, once it has ended. Destroyed last.
  Process& process_;
  std::vector<Process*> guests_;
  /// Page that finds_new_code() has not found executable, and how often it was asked for since.
  TraceeAddr unknown_page_;
  std::uint32_t unknown_asked_ = 0;
  std::shared_ptr<SourceStatistics> sums_;
  UniqueFd maps_;  ///< /proc/PID/maps, kept open from the beginning.
  std::unique_ptr<CacheMemory> memory_;
  InlineCalls calls_;
  ThreadParts threads_;
  SegvAction segv_action_;
  CodePages pages_;
  ExecutableMap executable_;
  ConstantRanges constant_;
  /// Ranges of files in which code was changed or unmapped; see ReplacedCode::of_files.
  std::set<std::pair<TraceeAddr, TraceeAddr>> left_by_files_;
  ReplacedCode replaced_code_;
  std::set<std::uint64_t> patched_;  ///< Pages of files, with code, that the program could write.
  PageProtection protection_;
  CodeCache code_;
  KeptTranslations kept_;
  ExitProfile profile_;
  int closes_gate_ = 0;
  bool room_wanted_ = false;
  bool mappings_current_ = false;
  bool kernel_writes_ = false;
  bool code_mapping_changed_ = false;  ///< By the program, which must not.
  bool child_has_less_ = false;        ///< Some of the mappings may not be for forked children.
  bool is_given_up_ = false;
  bool has_warned_ = false;
  bool seen_from_start_ = false;  ///< No call of the program went unseen.
  std::string why_disabled_;
};

}  // namespace backtrail::tracee::cache
