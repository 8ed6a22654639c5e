/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the static library links: see BacktrailArchives.cmake. */
#include <zlib.h>

int main(void) {
  z_stream stream = {0};
  return deflateInit(&stream, 6) != Z_OK || deflateEnd(&stream) != Z_OK;
}
