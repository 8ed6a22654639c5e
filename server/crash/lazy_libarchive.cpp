// libarchive, as far as it is called: it brings a dozen of libraries that only packing needs.

#include <archive.h>
#include <archive_entry.h>

#include "arch/base/lazy_library.hpp"

using backtrail::call_lazily;

extern "C" {

const char* archive_error_string(archive* from) {
  return call_lazily<&archive_error_string>(BT_LIBARCHIVE, "archive_error_string", from);
}

archive_entry* archive_entry_new() {
  return call_lazily<&archive_entry_new>(BT_LIBARCHIVE, "archive_entry_new");
}
void archive_entry_free(archive_entry* entry) {
  call_lazily<&archive_entry_free>(BT_LIBARCHIVE, "archive_entry_free", entry);
}
mode_t archive_entry_filetype(archive_entry* entry) {
  return call_lazily<&archive_entry_filetype>(BT_LIBARCHIVE, "archive_entry_filetype", entry);
}
const char* archive_entry_hardlink(archive_entry* entry) {
  return call_lazily<&archive_entry_hardlink>(BT_LIBARCHIVE, "archive_entry_hardlink", entry);
}
const char* archive_entry_pathname(archive_entry* entry) {
  return call_lazily<&archive_entry_pathname>(BT_LIBARCHIVE, "archive_entry_pathname", entry);
}
void archive_entry_set_filetype(archive_entry* entry, unsigned type) {
  call_lazily<&archive_entry_set_filetype>(BT_LIBARCHIVE, "archive_entry_set_filetype", entry,
                                           type);
}
void archive_entry_set_mtime(archive_entry* entry, time_t seconds, long nanoseconds) {
  call_lazily<&archive_entry_set_mtime>(BT_LIBARCHIVE, "archive_entry_set_mtime", entry, seconds,
                                        nanoseconds);
}
void archive_entry_set_pathname(archive_entry* entry, const char* name) {
  call_lazily<&archive_entry_set_pathname>(BT_LIBARCHIVE, "archive_entry_set_pathname", entry,
                                           name);
}
void archive_entry_set_perm(archive_entry* entry, mode_t mode) {
  call_lazily<&archive_entry_set_perm>(BT_LIBARCHIVE, "archive_entry_set_perm", entry, mode);
}
void archive_entry_set_size(archive_entry* entry, la_int64_t bytes) {
  call_lazily<&archive_entry_set_size>(BT_LIBARCHIVE, "archive_entry_set_size", entry, bytes);
}
void archive_entry_sparse_add_entry(archive_entry* entry, la_int64_t at, la_int64_t bytes) {
  call_lazily<&archive_entry_sparse_add_entry>(BT_LIBARCHIVE, "archive_entry_sparse_add_entry",
                                               entry, at, bytes);
}

archive* archive_read_new() {
  return call_lazily<&archive_read_new>(BT_LIBARCHIVE, "archive_read_new");
}
int archive_read_free(archive* in) {
  return call_lazily<&archive_read_free>(BT_LIBARCHIVE, "archive_read_free", in);
}
int archive_read_support_filter_zstd(archive* in) {
  return call_lazily<&archive_read_support_filter_zstd>(BT_LIBARCHIVE,
                                                        "archive_read_support_filter_zstd", in);
}
int archive_read_support_format_tar(archive* in) {
  return call_lazily<&archive_read_support_format_tar>(BT_LIBARCHIVE,
                                                       "archive_read_support_format_tar", in);
}
int archive_read_open_filename(archive* in, const char* path, size_t block) {
  return call_lazily<&archive_read_open_filename>(BT_LIBARCHIVE, "archive_read_open_filename", in,
                                                  path, block);
}
int archive_read_next_header(archive* in, archive_entry** entry) {
  return call_lazily<&archive_read_next_header>(BT_LIBARCHIVE, "archive_read_next_header", in,
                                                entry);
}
int archive_read_extract2(archive* in, archive_entry* entry, archive* out) {
  return call_lazily<&archive_read_extract2>(BT_LIBARCHIVE, "archive_read_extract2", in, entry,
                                             out);
}

archive* archive_write_new() {
  return call_lazily<&archive_write_new>(BT_LIBARCHIVE, "archive_write_new");
}
int archive_write_free(archive* out) {
  return call_lazily<&archive_write_free>(BT_LIBARCHIVE, "archive_write_free", out);
}
int archive_write_add_filter_zstd(archive* out) {
  return call_lazily<&archive_write_add_filter_zstd>(BT_LIBARCHIVE, "archive_write_add_filter_zstd",
                                                     out);
}
int archive_write_set_format_pax_restricted(archive* out) {
  return call_lazily<&archive_write_set_format_pax_restricted>(
      BT_LIBARCHIVE, "archive_write_set_format_pax_restricted", out);
}
int archive_write_open_filename(archive* out, const char* path) {
  return call_lazily<&archive_write_open_filename>(BT_LIBARCHIVE, "archive_write_open_filename",
                                                   out, path);
}
int archive_write_header(archive* out, archive_entry* entry) {
  return call_lazily<&archive_write_header>(BT_LIBARCHIVE, "archive_write_header", out, entry);
}
la_ssize_t archive_write_data(archive* out, const void* bytes, size_t count) {
  return call_lazily<&archive_write_data>(BT_LIBARCHIVE, "archive_write_data", out, bytes, count);
}
int archive_write_close(archive* out) {
  return call_lazily<&archive_write_close>(BT_LIBARCHIVE, "archive_write_close", out);
}
archive* archive_write_disk_new() {
  return call_lazily<&archive_write_disk_new>(BT_LIBARCHIVE, "archive_write_disk_new");
}
int archive_write_disk_set_options(archive* out, int flags) {
  return call_lazily<&archive_write_disk_set_options>(BT_LIBARCHIVE,
                                                      "archive_write_disk_set_options", out, flags);
}

}  // extern "C"
