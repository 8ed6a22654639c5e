/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the static library links: see BacktrailArchives.cmake. */
#include <capstone/capstone.h>

int main(void) {
  csh handle;
  cs_insn* instructions = 0;
  const unsigned char code[] = {0x90};
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK) return 1;
  const size_t count = cs_disasm(handle, code, sizeof code, 0x1000, 0, &instructions);
  cs_free(instructions, count);
  return cs_close(&handle) != CS_ERR_OK;
}
