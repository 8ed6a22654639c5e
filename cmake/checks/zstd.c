/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the static library links: see BacktrailArchives.cmake. */
#include <zstd.h>

int main(void) {
  char text[64] = {0};
  char packed[128];
  const size_t bytes = ZSTD_compress(packed, sizeof packed, text, sizeof text, 3);
  return ZSTD_isError(ZSTD_decompress(text, sizeof text, packed, bytes)) != 0;
}
