// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/kept_translations.hpp"

#include <algorithm>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "ptrace/codecache/persist/fixed_addresses.hpp"
#include "ptrace/codecache/program/program_kind.hpp"
#include "ptrace/codecache/program/section_search.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {
namespace {

/// The superblocks that processes have made since the last saving are worth another one from this
/// share of the old ones on: making them takes as long.
constexpr std::size_t kWorthKeepingShare = 64;
/// A fork saves only more than this many and this share, because the child may diverge at once.
constexpr std::size_t kWorthKeepingMeanwhileShare = 4;
constexpr std::size_t kWorthKeepingMeanwhile = 64;
/// Saved code takes memory in each process that loads it.
constexpr std::uint64_t kMostPersistentBytes = 100ULL << 20;
/// Limits for seeds, whose own code is useless to other programs: for a program that loads the same
/// libraries, and for one that has only the same dynamic linker.
constexpr std::uint64_t kMostSharedBytes = 8ULL << 20;
constexpr std::uint64_t kMostCommonBytes = 2ULL << 20;
/// A seed is replaced by one that has this share more superblocks for others.
constexpr std::uint64_t kBetterShare = 4;
/// Above this size, code may be mostly made at run time, which no other process can use.
constexpr std::uint64_t kLittleBytes = 16ULL << 20;

/// Returns true if the range may contain rseq critical sections outside of its `known` parts, which
/// are in order.
bool has_sections(pid_t pid, const ExecutableMap::Range& range,
                  const std::vector<CodeModule>& known) {
  if (range.inode == 0) return false;
  std::optional<std::string> file;  // looked up if it is needed
  constexpr std::uint64_t kSignatureBytes = 4;
  TraceeAddr at = range.begin;
  const auto has_before = [&](TraceeAddr end) {
    const std::uint64_t before = std::min<std::uint64_t>(at - range.begin, kSignatureBytes - 1);
    const std::uint64_t behind = std::min<std::uint64_t>(range.end - end, kSignatureBytes - 1);
    if (end <= at) return false;
    if (!file) file = file_behind(pid, range);
    return !file || file_has_abort_signature(*file, range.offset + (at - range.begin) - before,
                                             end - at + before + behind);
  };
  for (const CodeModule& part : known) {
    if (has_before(part.begin)) return true;
    at = part.end;
  }
  return has_before(range.end);
}

/// Returns the parts of the module that are kept, in order.
std::vector<CodeModule> parts_of(const CodeModule& module, const PersistentCode& kept) {
  std::vector<CodeModule> parts;
  for (const CodeModule& each : kept.parts().modules) {
    if (each.is_part_of(module)) parts.push_back(each);
  }
  std::sort(parts.begin(), parts.end(),
            [](const CodeModule& a, const CodeModule& b) { return a.begin < b.begin; });
  return parts;
}

bool is_in(std::span<const CodeModule> modules, const CodeModule& module) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](const CodeModule& each) { return module.is_part_of(each); });
}

/// Counts the superblocks of modules for which `counts` is true.
template <typename Counts>
std::size_t blocks_of(const PersistentCode& code, Counts counts) {
  std::vector<translate::Branch> modules;
  for (const CodeModule& module : code.parts().modules) {
    if (counts(module)) modules.emplace_back(module.begin, module.end);
  }
  std::sort(modules.begin(), modules.end());
  const auto& blocks = code.parts().blocks;
  return static_cast<std::size_t>(
      std::count_if(blocks.begin(), blocks.end(), [&](const CodeBlock& block) {
        const auto after = std::upper_bound(
            modules.begin(), modules.end(), block.start,
            [](TraceeAddr start, const translate::Branch& each) { return start < each.first; });
        return after != modules.begin() && block.start < std::prev(after)->second;
      }));
}

}  // namespace

void KeptTranslations::begin(std::shared_ptr<PersistentStore> store, const CacheMemory& memory,
                             const translate::InlineSystemCalls& calls) {
  if (!store) return;
  const auto exe = ProcFs{}.exe(process_.pid());
  const auto repeated = repeated_place(process_);
  if (!exe || !repeated) return;
  store_ = std::move(store);
  std::string place =
      fmt::format(" {:x} {:x} {:x}", memory.code().value(), memory.table().value(), *repeated);
  if (translate::faster_table_index() == translate::TableIndex::kMasked) place += " pext";
  if (calls != inline_system_calls()) {
    std::string checks;
    for (const translate::CallCheck check : calls) checks += static_cast<char>(check);
    place += fmt::format(" {:x}", std::hash<std::string>{}(checks));
  }
  if (code_.records_values()) place += " values";
  if (code_.values() == ValueDepth::kAll) place += " overwritten";
  key_ = *exe + place;
  // Loaded superblocks would run over breakpoints that are set already.
  if (!process_.breakpoints().empty() || !process_.debug_registers().empty()) return;
  auto kept = store_->find(key_);
  if (!kept) kept = code_of_its_kind(place);
  if (kept) code_.load(std::move(kept));
}

std::shared_ptr<const PersistentCode> KeptTranslations::code_of_its_kind(const std::string& place) {
  const UniqueFd file{::open(ProcFs{}.path(process_.pid(), "exe").c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return nullptr;
  own_identity_ = store_->identity_of(ProcFs{}.path(process_.pid(), "exe"), 0, 0);
  const ProgramKind kind = kind_of_program(file.get());
  if (kind.linker.empty()) return nullptr;
  const std::string linked = "* " + kind.linker + place;
  kinds_ = {{linked + kind.libraries, kMostSharedBytes}, {linked, kMostCommonBytes}};
  for (const Kind& each : kinds_) {
    const auto who = store_->seed(each.name);
    if (!who) continue;
    if (auto code = store_->find(who->key)) return code;
  }
  return nullptr;
}

void KeptTranslations::offer_to_its_kind() {
  if (kinds_.empty()) return;
  const auto code = store_->find(key_);
  if (!code) return;
  const std::size_t shared = blocks_of(
      *code, [this](const CodeModule& module) { return module.identity != own_identity_; });
  for (const Kind& kind : kinds_) {
    if (code->parts().code.size() > kind.most_bytes) continue;
    const auto who = store_->seed(kind.name);
    const bool better = !who || shared > who->shared + who->shared / kBetterShare;
    if (better || !store_->has(who->key)) store_->set_seed(kind.name, {key_, shared});
  }
}

void KeptTranslations::use_modules(const std::vector<ExecutableMap::Range>& ranges,
                                   const CodeModules* parents) {
  if (!store_) return;
  const auto& loaded = code_.loaded();
  for (const ExecutableMap::Range& range : ranges) {
    if (range.may_change || (range.inode == 0 && range.path != kVdso) || modules_.knows(range)) {
      continue;
    }
    auto module = parents != nullptr && parents->knows(range)
                      ? parents->find(range)
                      : identify(process_.pid(), range, identity_in_store());
    const auto parts = module && loaded ? parts_of(*module, *loaded) : std::vector<CodeModule>{};
    // Which parts of such code may be translated becomes known only while it runs.
    if (module && has_sections(process_.pid(), range, parts)) module.reset();
    for (const CodeModule& displaced : modules_.add(range, module)) {
      code_.forget_unloaded(displaced.begin, displaced.end);
    }
    if (!module) continue;
    for (const CodeModule& part : parts) code_.activate(part.begin, part.end);
  }
}

bool KeptTranslations::lose(TraceeAddr begin, TraceeAddr end) {
  const std::vector<CodeModule> lost = modules_.lose(begin, end);
  unload(lost);
  return !lost.empty();
}

void KeptTranslations::lose_all_but(const std::vector<ExecutableMap::Range>& ranges) {
  unload(modules_.lose_all_but(ranges));
}

void KeptTranslations::unload(const std::vector<CodeModule>& modules) {
  for (const CodeModule& module : modules) code_.unload(module.begin, module.end);
}

std::size_t KeptTranslations::usable_blocks(const PersistentCode& code) const {
  const PersistentModules known = modules_.kept();
  return blocks_of(code, [&](const CodeModule& module) {
    return is_in(known.present, module) || is_in(known.gone, module);
  });
}

std::shared_ptr<const PersistentCode> KeptTranslations::keep() {
  if (!store_) return nullptr;
  const auto& loaded = code_.loaded();
  const std::uint64_t used = code_.bytes_used();
  const std::size_t made = code_.blocks_of_files();
  const std::size_t old = loaded ? loaded->parts().blocks.size() : 0;
  const bool crowded = code_.cleared() != 0 || used > kMostPersistentBytes;
  if (crowded || (used > kLittleBytes && 2 * (old + made) < old + code_.blocks())) {
    // Each process would add code that only it can use. If most kept code is of that kind, forget
    // it.
    const bool forgets = loaded && (code_.cleared() != 0 || 2 * usable_blocks(*loaded) < old);
    if (forgets) store_->forget(key_);
    return nullptr;
  }
  if (made == 0) return nullptr;
  const auto other = store_->find(key_);
  if (other && store_->add_unsaved(key_, made) <= old / kWorthKeepingShare) return nullptr;
  // Keep the process that leaves the most, of those that run at the same time.
  if (other && other != loaded &&
      usable_blocks(*other) >= made + (loaded ? usable_blocks(*loaded) : 0)) {
    return nullptr;
  }
  return put(CodeCache::Keeping::kAtEnd);
}

void KeptTranslations::keep_for_child() {
  if (!store_ || code_.cleared() != 0 || code_.bytes_used() > kMostPersistentBytes) return;
  const std::size_t made = code_.blocks_of_files();
  const std::size_t old = code_.loaded() ? code_.loaded()->parts().blocks.size() : 0;
  const std::size_t kept = old + kept_meanwhile_;
  if (made - kept_meanwhile_ <= kWorthKeepingMeanwhile + kept / kWorthKeepingMeanwhileShare) return;
  kept_meanwhile_ = made;
  (void)put(CodeCache::Keeping::kMeanwhile);
}

FileIdentity KeptTranslations::identity_in_store() const {
  return [this](const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
    return store_->identity_of(path, offset, bytes);
  };
}

std::shared_ptr<const PersistentCode> KeptTranslations::put(CodeCache::Keeping when) {
  // A file that somebody has overwritten meanwhile is another one.
  modules_.forget_if(
      [identity_of = identity_in_store()](const CodeModule& module, const std::string& path) {
        return !is_still(module, path, identity_of);
      });
  std::shared_ptr<const PersistentCode> saved;
  code_.keep(modules_.kept(), when,
             [&](const PersistentPieces& code) { saved = store_->put(key_, code); });
  offer_to_its_kind();
  return saved;
}

}  // namespace backtrail::tracee::cache
