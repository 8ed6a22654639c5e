#pragma once
/// @file
/// What the recorded threads of one address space share.

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
#include "ptrace/codecache/persist/kept_store.hpp"
#include "ptrace/codecache/program/code_modules.hpp"
#include "ptrace/codecache/program/code_pages.hpp"
#include "ptrace/codecache/program/executable_map.hpp"
#include "ptrace/codecache/program/quiet_pages.hpp"
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
  /// The one that the process has, or a new one. The thread must stand between two instructions.
  /// Errors of CacheMemory::create; kUnsupported where translated code must not run.
  static Result<std::shared_ptr<CacheSpace>> of(Thread& thread,
                                                std::shared_ptr<SourceStatistics> sums,
                                                std::shared_ptr<KeptStore> store);
  ~CacheSpace();
  CacheSpace(const CacheSpace&) = delete;
  CacheSpace& operator=(const CacheSpace&) = delete;

  /// Whose memory it is. Others that share it (a vfork's child) are guests.
  [[nodiscard]] const Process& process() const { return process_; }
  void add_guest(Process& guest) { guests_.push_back(&guest); }
  void remove_guest(const Process& guest) { std::erase(guests_, &guest); }
  /// A guest's threads begin to use it: they stop at breakpoints of its own, too.
  void stop_at_breakpoints_of(Process& guest);
  [[nodiscard]] CacheMemory& memory() { return *memory_; }
  [[nodiscard]] CodeCache& code() { return *code_; }

  /// A thread's part of the memory. Error kBusy when all are taken.
  Result<std::size_t> take_slot(Thread& thread);
  void give_slot_back(std::size_t slot);
  [[nodiscard]] bool used() const { return slots_.any(); }
  /// An area for a log. Errors: CacheMemory::add_area().
  Result<std::size_t> take_area(Thread& thread);
  void give_area_back(std::size_t area) { free_areas_.push_back(area); }

  /// The thread whose area for restartable sequences is there may have named one.
  void look_for_section_of(TraceeAddr area);
  /// The debugger has written code.
  void code_written(TraceeAddr begin, TraceeAddr end);
  /// Executable memory changes so, or has.
  void change_mappings(const MappingChange& change);
  /// It may have changed in any way.
  void mappings_changed() { mappings_current_ = false; }
  /// Looks at it again if it may have; drops what is not true any more.
  Result<void> refresh();

  /// A process of the tree may write to /proc/PID/mem: writes are not made by translated code.
  void watch_writes();
  /// The kernel writes for the program at any time (io_uring, aio). Where it may write to
  /// /proc/PID/mem so, all code may change at any time.
  void let_kernel_write();
  /// A file has been opened for writing: code of private mappings that `is_of_it` may change from
  /// now on. Whether there is such code.
  bool file_may_change(const std::function<bool(const MapEntry&)>& is_of_it);

  /// The process has a child, which begins as it is: where there is much that is not kept yet, it
  /// is now.
  void keep_for_child();

  /// The memory for translations is used up: every thread has to leave them.
  void want_room() { room_wanted_ = true; }
  [[nodiscard]] bool room_wanted() const { return room_wanted_; }
  /// Forgets all translations, if no thread is in them.
  bool make_room();
  /// A thread goes into translated code, or has left it.
  void set_inside(std::size_t slot, bool inside) { inside_.set(slot, inside); }

  /// A stopped thread has logged this: what runs often may be made again, better.
  void learn_from_log(std::span<const std::uint32_t> log);

  // Code that may be written at any time is looked at whenever it is run. Where it is never
  // written, the permission is taken away instead: it is quiet, until somebody writes it.

  /// A stopped thread has logged this: what runs often may be made quiet.
  void look_for_quiet_code(Thread& thread, std::span<const std::uint32_t> log);
  [[nodiscard]] const QuietPages& quiet() const { return quiet_; }
  /// A page that a thread may write for one instruction.
  struct WrittenPage {
    TraceeAddr begin;
    std::array<std::uint8_t, QuietPages::kPageBytes> before{};
  };
  /// The next instruction writes there. That may take more than one page.
  Result<void> let_write(Thread& thread, TraceeAddr at, std::vector<WrittenPage>& written);
  /// It has. Nothing: the thread is gone.
  void note_written(Thread* thread, std::vector<WrittenPage>& written);
  /// Nothing in [begin, end) is quiet any more; the thread is stopped outside system calls.
  Result<void> end_quiet(Thread& thread, TraceeAddr begin, TraceeAddr end);
  Result<void> end_all_quiet(Thread& thread);
  /// The memory is about to be copied, or will be written by others: until a call with false for
  /// each with true, nothing becomes quiet.
  void keep_awake(bool on) { on ? ++awake_ : --awake_; }

  /// From now on nothing may be run from here. The first reason stays.
  void forbid(std::string why);
  [[nodiscard]] bool forbidden() const { return !why_forbidden_.empty(); }
  [[nodiscard]] const std::string& why_forbidden() const { return why_forbidden_; }

  /// A thread installs a filter: until a call with false for each with true, nobody goes in.
  void hold(bool on) { on ? ++holds_ : --holds_; }
  [[nodiscard]] bool held() const { return holds_ != 0; }
  [[nodiscard]] bool anybody_inside() const { return inside_.any(); }
  /// These filters are in force, or about to be, and nobody is inside. Translated code makes fewer
  /// calls itself.
  void restrict_calls(const SeccompFilters& filters);

  /// The program's address space is limited, or not any more. Where ours counts, it is the first to
  /// go: calls that may be refused because of it are not made by translated code.
  void note_limit();

  /// A full log raises SIGSEGV. Where that is blocked or ignored the kernel resets the action;
  /// these know it and put it back.
  void segv_action_changed() { segv_action_current_ = false; }
  Result<void> learn_segv_action(Thread& thread, std::size_t slot);
  Result<void> repair_segv(Thread& thread, std::size_t slot, std::uint64_t mask);

 private:
  CacheSpace(Process& process, std::shared_ptr<SourceStatistics> sums);
  /// Signal actions as they were when the memory was set up.
  void take_actions();
  /// Other calls are to be made by translated code than until now.
  void change_calls(const translate::InlineSystemCalls& calls);
  void leave_mapping_calls(translate::InlineSystemCalls& calls) const;
  void begin_keeping(std::shared_ptr<KeptStore> store);
  /// Of a program that has none of its own.
  std::shared_ptr<const KeptCode> code_of_its_kind(const std::string& place);
  /// What has been kept of this program may serve others of its kind.
  void offer_to_its_kind();
  void use_kept_modules();
  /// They are gone, or may change from now on.
  void retire(const std::vector<CodeModule>& modules);
  void keep();
  void put_kept(CodeCache::Keeping when);
  /// Those of modules that are, or were, here.
  [[nodiscard]] std::size_t usable_blocks(const KeptCode& code) const;
  /// Translations of [begin, end), where code is another now or may be, are not used any more, nor
  /// does any thread go on in them. `lost` modules retire.
  void drop(TraceeAddr begin, TraceeAddr end, const std::vector<CodeModule>& lost = {});
  void call_out_running();
  Result<std::vector<MapEntry>> read_maps();
  Result<ExecutableMap> read_mappings();
  /// Ids as the program sees them, for the signals that it sends itself.
  Result<void> write_ids(Thread& thread, ThreadMemory memory);
  void note_way_to_stop(std::size_t slot);
  [[nodiscard]] translate::Special left_to_cpu(TraceeAddr address) const;
  /// Breakpoints do not show.
  std::size_t read_code(TraceeAddr at, std::span<std::uint8_t> out);
  Result<void> make_quiet(Thread& thread, const std::vector<TraceeAddr>& pages);
  [[nodiscard]] bool is_quiet(TraceeAddr address) const;
  [[nodiscard]] bool is_quiet_page(TraceeAddr address) const;
  /// What the process wrote in that memory changes by nothing but its own writes.
  [[nodiscard]] bool keeps_copies(const ExecutableMap::Range& range) const;
  /// The file beneath has been open for writing: where it is not any more, the memory keeps copies.
  bool let_keep_copies(Thread& thread, const ExecutableMap::Range& range);
  /// Whether a page that is due may become quiet.
  bool is_settled(Thread& thread, TraceeAddr page);
  /// Every page may change at any time.
  [[nodiscard]] bool all_may_change() const;
  /// Translations of what is not as it was.
  void drop_changed(const WrittenPage& page);
  void look_for_section(TraceeAddr descriptor);
  void leave_section(const RestartableSection& section);

  Process& process_;
  std::vector<Process*> guests_;
  std::shared_ptr<SourceStatistics> sums_;
  UniqueFd maps_;  ///< /proc/PID/maps, open from the beginning.
  std::unique_ptr<CacheMemory> memory_;
  translate::InlineSystemCalls inline_calls_{};
  std::unique_ptr<CodeCache> code_;
  CodePages pages_;
  ExecutableMap executable_;
  ExitProfile profile_;
  QuietPages quiet_;
  /// Memory of files that were open for writing, and were let go.
  std::vector<ExecutableMap::Range> let_go_;
  int awake_ = 0;
  std::bitset<kMaxThreads> slots_;
  std::vector<std::size_t> free_areas_;
  std::optional<bool> same_ids_;    ///< The program sees the ids that we see.
  bool first_thread_ready_ = true;  ///< The first part is as CacheMemory::create() has left it.
  std::bitset<kMaxThreads> inside_;
  int holds_ = 0;
  bool stop_by_fault_ = false;
  bool room_wanted_ = false;
  KernelSigaction segv_action_;
  bool segv_action_current_ = false;
  bool mappings_current_ = false;
  bool kernel_writes_ = false;
  std::string why_forbidden_;
  std::shared_ptr<KeptStore> store_;  ///< Empty: nothing is kept.
  std::string key_;
  std::size_t kept_meanwhile_ = 0;  ///< So many of our superblocks.
  /// Programs that load the same libraries, or at least the same dynamic linker.
  struct Kind {
    std::string name;
    std::uint64_t most_bytes = 0;  ///< Of code that is to serve all of them.
  };
  std::vector<Kind> kinds_;  ///< Of a program of which nothing was kept.
  std::uint64_t own_inode_ = 0;
  CodeModules modules_;
};

}  // namespace backtrail::tracee::cache
