// SPDX-License-Identifier: Apache-2.0
// Implements Symbols with elfutils.
#include <algorithm>
#include <fstream>
#include <optional>
#include <unordered_map>
#include <utility>

#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <gelf.h>

#include "arch/base/page.hpp"
#include "decoder/symbols/demangle.hpp"
#include "decoder/symbols/elf_functions.hpp"
#include "decoder/symbols/elf_variables.hpp"
#include "decoder/symbols/line_table.hpp"
#include "decoder/symbols/stack_unwinder.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {
namespace {

using ElfHandle = std::unique_ptr<Elf, decltype(&elf_end)>;
using DwflHandle = std::unique_ptr<Dwfl, decltype(&dwfl_end)>;

/// Texts by number; number 0 is the empty text.
class TextPool {
 public:
  TextPool() { add({}); }
  std::uint32_t add(const std::string& text) {
    const auto [place, is_new] = ids_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(&place->first);
    return place->second;
  }
  [[nodiscard]] const std::string& at(std::uint32_t id) const {
    return *texts_[id < texts_.size() ? id : 0];
  }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> texts_;
};

/// Returns the difference between addresses in the process and in the file; nullopt if no mapping
/// matches.
std::optional<std::uint64_t> bias_of(Elf* elf, const LoadedModule& module) {
  GElf_Ehdr header{};
  if (gelf_getehdr(elf, &header) == nullptr) return std::nullopt;
  if (header.e_type == ET_EXEC) return 0;
  std::size_t count = 0;
  elf_getphdrnum(elf, &count);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
    const std::uint64_t first = page_begin(segment.p_offset);
    for (const LoadedModule::Piece& piece : module.pieces) {
      if (piece.file_offset != first) continue;
      return piece.start.value() - (segment.p_vaddr - (segment.p_offset - first));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> bias_of_file(const LoadedModule& module) {
  constexpr std::size_t kHeaders = 64U << 10U;
  std::string bytes(kHeaders, '\0');
  std::ifstream file{module.found, std::ios::binary};
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  const ElfHandle elf{elf_memory(bytes.data(), bytes.size()), &elf_end};
  return elf ? bias_of(elf.get(), module) : std::nullopt;
}

/// A module and what has been read from it.
struct Module {
  LoadedModule loaded;
  bool opened = false;
  Dwfl_Module* dwfl = nullptr;
  ElfHandle image{nullptr, &elf_end};
  std::optional<FunctionTable> functions;
  std::uint32_t first_id = 0;
  std::vector<std::string> names;  ///< Demangled names by index; empty until asked for.
  std::unique_ptr<LineTable> lines;
};

/// Gives libdwfl the in-memory ELF of a module. Other modules have a file.
int find_image(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base,
               char** file_name, Elf** elf) {
  auto* owner = static_cast<Module*>(*user);
  if (owner == nullptr || !owner->image) {
    return dwfl_build_id_find_elf(module, user, name, base, file_name, elf);
  }
  *elf = owner->image.release();  // libdwfl frees it.
  return -1;
}

std::string debug_path(const std::vector<std::string>& roots) {
  std::string path = ":.debug";
  for (const std::string& root : roots) path += ":" + root + "/usr/lib/debug";
  return path + ":/usr/lib/debug";
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

FunctionTable functions_of_made(const std::vector<CodeName>& names) {
  std::vector<CodeSymbol> symbols;
  std::vector<CodeRange> code;
  for (const CodeName& name : names) {
    CodeSymbol symbol;
    symbol.start = name.start;
    symbol.size = name.size;
    symbol.name = name.name;
    symbols.push_back(std::move(symbol));
    code.push_back({name.start, name.start + name.size});
  }
  return {std::move(symbols), {}, std::move(code)};
}

class ElfSymbols final : public Symbols {
 public:
  ElfSymbols(std::vector<LoadedModule> modules, const SymbolsOptions& options)
      : debug_path_{debug_path(options.roots)} {
    elf_version(EV_CURRENT);
    callbacks_.find_elf = find_image;
    callbacks_.find_debuginfo = dwfl_standard_find_debuginfo;
    callbacks_.section_address = dwfl_offline_section_address;
    debug_path_pointer_ = debug_path_.data();
    callbacks_.debuginfo_path = &debug_path_pointer_;
    dwfl_.reset(dwfl_begin(&callbacks_));
    for (LoadedModule& loaded : modules) {
      auto module = std::make_unique<Module>();
      for (const LoadedModule::Piece& piece : loaded.pieces) {
        places_.push_back({piece.start, piece.end, piece.file_offset, module.get()});
      }
      module->loaded = std::move(loaded);
      modules_.push_back(std::move(module));
    }
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return a.start < b.start; });
    made_.opened = true;
    set_functions(made_, functions_of_made(options.made));
  }

  FunctionRef at(TraceeAddr address) override {
    Cached& cached = cache_[address.value() * 0x9e3779b97f4a7c15U >> (64U - kCacheBits)];
    if (cached.address != address) cached = {address, look_up(address)};
    return cached.function;
  }
  const std::string& function_name(std::uint32_t id) override;
  SourceLine line_at(TraceeAddr address) override;
  const std::vector<CodeFrame>& frames_at(TraceeAddr address) override;
  [[nodiscard]] const std::string& text(std::uint32_t id) const override { return texts_.at(id); }
  [[nodiscard]] std::string module_place(TraceeAddr address) const override {
    const Place* place = place_at(address);
    if (place == nullptr) return {};
    return fmt::format("{}+{:#x}", base_name(place->module->loaded.path),
                       place->file_offset + (address - place->start));
  }
  [[nodiscard]] Stack unwind(const arch::cpu::DwarfRegisters& registers,
                             const ReadMemory& memory) override {
    for (const auto& module : modules_) open(*module);
    return unwind_stack(dwfl_.get(), registers, memory);
  }
  [[nodiscard]] VariableReader& variables() override { return variables_; }

 private:
  struct Place {
    TraceeAddr start;
    TraceeAddr end;
    std::uint64_t file_offset = 0;
    Module* module = nullptr;
  };
  struct Cached {
    TraceeAddr address{~0ULL};
    FunctionRef function;
  };
  static constexpr unsigned kCacheBits = 14;

  [[nodiscard]] const Place* place_at(TraceeAddr address) const {
    const auto after =
        std::upper_bound(places_.begin(), places_.end(), address,
                         [](TraceeAddr at, const Place& place) { return at < place.start; });
    if (after == places_.begin() || address >= std::prev(after)->end) return nullptr;
    return &*std::prev(after);
  }
  FunctionRef look_up(TraceeAddr address);
  void set_functions(Module& module, FunctionTable functions);
  void open(Module& module);
  FunctionTable& functions_of(Module& module);
  LineTable& lines_of(Module& module);
  SourceLine source_line(LineTable::Place place) {
    return place.file == nullptr ? SourceLine{} : SourceLine{texts_.add(place.file), place.line};
  }

  std::string debug_path_;
  char* debug_path_pointer_ = nullptr;
  Dwfl_Callbacks callbacks_{};
  std::vector<std::unique_ptr<Module>> modules_;
  Module made_;                          ///< Code that the program generated at run time.
  DwflHandle dwfl_{nullptr, &dwfl_end};  ///< Destroyed before the modules that it points into.
  std::vector<Place> places_;            ///< Sorted by address.
  std::vector<Module*> by_id_;           ///< Sorted by first id.
  std::uint32_t next_id_ = 1;
  std::vector<Cached> cache_ = std::vector<Cached>(std::size_t{1} << kCacheBits);
  TextPool texts_;
  std::unordered_map<TraceeAddr, SourceLine> line_cache_;
  std::unordered_map<TraceeAddr, std::vector<CodeFrame>> frame_cache_;
  ElfVariables::Code code_of(Module& module) {
    open(module);
    ElfVariables::Code code{nullptr, nullptr, base_name(module.loaded.path)};
    if (module.dwfl == nullptr) return code;
    code.module = module.dwfl;
    code.lines = &lines_of(module);
    return code;
  }
  ElfVariables variables_{[this](TraceeAddr address) {
                            const Place* place = place_at(address);
                            return place == nullptr ? ElfVariables::Code{}
                                                    : code_of(*place->module);
                          },
                          [this] {
                            std::vector<ElfVariables::Code> all;
                            for (const auto& module : modules_) {
                              const auto code = code_of(*module);
                              if (code.module != nullptr) all.push_back(code);
                            }
                            return all;
                          }};
};

void ElfSymbols::open(Module& module) {
  if (std::exchange(module.opened, true) || !dwfl_) return;
  const std::string& name = module.loaded.path;
  dwfl_report_begin_add(dwfl_.get());
  if (!module.loaded.image.empty()) {
    std::vector<std::uint8_t>& bytes = module.loaded.image;
    module.image.reset(elf_memory(reinterpret_cast<char*>(bytes.data()), bytes.size()));
    if (module.image && elf_kind(module.image.get()) == ELF_K_ELF) {
      const TraceeAddr start = module.loaded.pieces.front().start;
      module.dwfl = dwfl_report_module(dwfl_.get(), name.c_str(), start.value(),
                                       start.value() + bytes.size());
      void** user = nullptr;
      if (module.dwfl != nullptr) {
        dwfl_module_info(module.dwfl, &user, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
        *user = &module;
      }
    }
  } else if (!module.loaded.found.empty()) {
    if (const auto bias = bias_of_file(module.loaded)) {
      module.dwfl =
          dwfl_report_elf(dwfl_.get(), name.c_str(), module.loaded.found.c_str(), -1, *bias, true);
    }
  }
  dwfl_report_end(dwfl_.get(), nullptr, nullptr);
}

FunctionTable& ElfSymbols::functions_of(Module& module) {
  if (!module.functions) {
    open(module);
    set_functions(module, module.dwfl == nullptr ? FunctionTable{} : read_functions(module.dwfl));
  }
  return *module.functions;
}

void ElfSymbols::set_functions(Module& module, FunctionTable functions) {
  const std::size_t count = functions.entries().size();
  module.functions = std::move(functions);
  module.first_id = next_id_;
  next_id_ += static_cast<std::uint32_t>(count);
  module.names.resize(count);
  if (count != 0) by_id_.push_back(&module);
}

LineTable& ElfSymbols::lines_of(Module& module) {
  if (!module.lines) module.lines = std::make_unique<LineTable>(module.dwfl);
  return *module.lines;
}

FunctionRef ElfSymbols::look_up(TraceeAddr address) {
  const Place* place = place_at(address);
  Module* module = place == nullptr ? &made_ : place->module;
  const FunctionTable::Entry* entry = functions_of(*module).find(address.value());
  if (entry == nullptr && module != &made_) {
    module = &made_;
    entry = made_.functions->find(address.value());
  }
  if (entry == nullptr) return {};
  const FunctionTable::Entry& owner = module->functions->entries()[entry->owner];
  return {module->first_id + entry->owner, TraceeAddr{owner.start}, entry->stub,
          entry->stack_switch};
}

const std::string& ElfSymbols::function_name(std::uint32_t id) {
  const auto after = std::upper_bound(
      by_id_.begin(), by_id_.end(), id,
      [](std::uint32_t wanted, const Module* module) { return wanted < module->first_id; });
  if (id == 0 || after == by_id_.begin()) return texts_.at(0);
  Module& module = **std::prev(after);
  const std::uint32_t index = id - module.first_id;
  if (index >= module.names.size()) return texts_.at(0);
  std::string& name = module.names[index];
  if (!name.empty()) return name;
  const FunctionTable::Entry& entry = module.functions->entries()[index];
  name = demangled(entry.name);
  if (name.empty()) name = demangled(lines_of(module).function_at(entry.start));
  if (name.empty()) name = module_place(TraceeAddr{entry.start});
  return name;
}

SourceLine ElfSymbols::line_at(TraceeAddr address) {
  const auto [place, is_new] = line_cache_.try_emplace(address);
  if (!is_new) return place->second;
  const Place* mapped = place_at(address);
  if (mapped == nullptr) return {};
  open(*mapped->module);
  if (mapped->module->dwfl == nullptr) return {};
  place->second = source_line(lines_of(*mapped->module).line_at(address.value()));
  return place->second;
}

const std::vector<CodeFrame>& ElfSymbols::frames_at(TraceeAddr address) {
  const auto [place, is_new] = frame_cache_.try_emplace(address);
  std::vector<CodeFrame>& frames = place->second;
  if (!is_new) return frames;
  const FunctionRef function = at(address);
  const std::uint32_t name = texts_.add(function_name(function.id));
  frames.push_back({name, line_at(address), false});
  const Place* mapped = place_at(address);
  if (mapped == nullptr || mapped->module->dwfl == nullptr) return frames;
  for (const LineTable::Inlined& inlined : lines_of(*mapped->module).inlined_at(address.value())) {
    // Outermost first: each inlined function takes the current line, and its call site becomes the
    // next.
    CodeFrame inner{texts_.add(demangled(inlined.name)), frames.front().line, true};
    frames.front().line = source_line(inlined.call);
    frames.insert(frames.begin(), inner);
  }
  return frames;
}

}  // namespace

std::unique_ptr<Symbols> make_elf_symbols(std::vector<LoadedModule> modules,
                                          const SymbolsOptions& options) {
  return std::make_unique<ElfSymbols>(std::move(modules), options);
}

}  // namespace backtrail::decoder
