/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the static libraries link: see BacktrailArchives.cmake. */
#include <archive.h>
#include <archive_entry.h>

int main(void) {
  struct archive* in = archive_read_new();
  struct archive* out = archive_write_new();
  struct archive* disk = archive_write_disk_new();
  struct archive_entry* entry = 0;
  archive_read_support_filter_zstd(in);
  archive_read_support_format_tar(in);
  archive_write_add_filter_zstd(out);
  archive_write_set_format_pax_restricted(out);
  archive_write_disk_set_options(disk, ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_SECURE_SYMLINKS);
  archive_read_next_header(in, &entry);
  return archive_read_extract2(in, entry, disk) != ARCHIVE_OK;
}
