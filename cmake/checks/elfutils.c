/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the static libraries link: see BacktrailArchives.cmake. libarchive calls zlib's crc32(),
 * which libelf.a of elfutils 0.196 defines, too. */
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <zlib.h>

static const Dwfl_Callbacks callbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo,
                                         dwfl_offline_section_address, 0};

static int walk(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr start,
                void* argument) {
  Dwarf_Addr bias;
  Dwarf_CFI* frames = dwfl_module_eh_cfi(module, &bias);
  Dwarf_Frame* frame = 0;
  Dwarf_Die* unit = dwfl_module_nextcu(module, 0, &bias);
  Dwarf_Op* ops;
  size_t count;
  (void)data, (void)name, (void)argument;
  if (frames) dwarf_cfi_addrframe(frames, start, &frame);
  if (unit) dwarf_getlocation((Dwarf_Attribute*)0, &ops, &count);
  return dwfl_module_getsymtab(module) < 0;
}

int main(int argc, char** argv) {
  Dwfl* dwfl = dwfl_begin(&callbacks);
  Elf* elf = elf_begin(open(argv[0], O_RDONLY), ELF_C_READ_MMAP, 0);
  GElf_Shdr header;
  z_stream stream = {0};
  elf_version(EV_CURRENT);
  gelf_getshdr(elf_nextscn(elf, 0), &header);
  dwfl_report_offline(dwfl, "", argv[argc - 1], -1);
  dwfl_report_end(dwfl, 0, 0);
  dwfl_attach_state(dwfl, elf, 0, 0, 0);
  deflateInit(&stream, 6);
  deflate(&stream, Z_FINISH);
  stream.adler = crc32(0, Z_NULL, 0);
  return dwfl_getmodules(dwfl, walk, 0, 0) != 0;
}
