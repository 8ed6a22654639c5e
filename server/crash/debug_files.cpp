// SPDX-License-Identifier: Apache-2.0
#include "server/crash/debug_files.hpp"

#include <filesystem>
#include <memory>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>

namespace backtrail::server {
namespace {

namespace fs = std::filesystem;

void add_if_there(const fs::path& path, std::set<std::string>& out) {
  std::error_code error;
  const fs::path plain = path.lexically_normal();
  if (plain.is_absolute() && fs::is_regular_file(plain, error)) out.insert(plain.string());
}

/// Adds the sources of one compilation unit.
void add_sources(Dwarf_Die& unit, std::set<std::string>& out) {
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (::dwarf_getsrcfiles(&unit, &files, &count) != 0) return;
  Dwarf_Attribute attribute;
  const char* folder = ::dwarf_formstring(::dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
  for (std::size_t i = 0; i < count; ++i) {
    const char* name = ::dwarf_filesrc(files, i, nullptr, nullptr);
    if (name == nullptr) continue;
    const fs::path path{name};
    add_if_there(path.is_absolute() || folder == nullptr ? path : fs::path{folder} / path, out);
  }
}

void add_all_sources(Dwarf* dwarf, std::set<std::string>& out) {
  Dwarf_Off offset = 0;
  Dwarf_Off next = 0;
  std::size_t header = 0;
  while (::dwarf_nextcu(dwarf, offset, &next, &header, nullptr, nullptr, nullptr) == 0) {
    Dwarf_Die unit;
    if (::dwarf_offdie(dwarf, offset + header, &unit) != nullptr) add_sources(unit, out);
    offset = next;
  }
}

}  // namespace

void find_debug_files(const std::string& elf, DebugFiles& out) {
  Dwfl_Callbacks callbacks{};
  callbacks.find_elf = ::dwfl_build_id_find_elf;
  callbacks.find_debuginfo = ::dwfl_standard_find_debuginfo;
  callbacks.section_address = ::dwfl_offline_section_address;
  const std::unique_ptr<Dwfl, decltype(&dwfl_end)> session{::dwfl_begin(&callbacks), ::dwfl_end};
  Dwfl_Module* module = ::dwfl_report_offline(session.get(), elf.c_str(), elf.c_str(), -1);
  if (module == nullptr) return;
  ::dwfl_report_end(session.get(), nullptr, nullptr);
  Dwarf_Addr bias = 0;
  Dwarf* dwarf = ::dwfl_module_getdwarf(module, &bias);
  if (dwarf == nullptr) return;
  const char* debug = nullptr;
  ::dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &debug);
  if (debug != nullptr) add_if_there(debug, out.debug);
  const char* shared = nullptr;
  const void* build_id = nullptr;
  if (::dwelf_dwarf_gnu_debugaltlink(dwarf, &shared, &build_id) > 0 && shared != nullptr) {
    add_if_there(fs::path{debug != nullptr ? debug : elf.c_str()}.parent_path() / shared,
                 out.debug);
  }
  add_all_sources(dwarf, out.sources);
}

}  // namespace backtrail::server
