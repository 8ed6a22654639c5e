// libarchive's functions, as far as they are called: the library is loaded by the first of them. It
// brings a dozen of other libraries, for which every start of every command would pay.

#include <stdexcept>
#include <string>

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>

namespace {

void* find(const char* name) {
  static void* const library = ::dlopen(BT_LIBARCHIVE, RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found != nullptr) return found;
  const char* why = ::dlerror();
  throw std::runtime_error{why == nullptr ? std::string{BT_LIBARCHIVE " lacks "} + name : why};
}

/// Calls what is called `name` in the library and has the type of `declared`, which is its stub.
template <typename Result, typename... Parameters, typename... Arguments>
Result pass_on(Result (*declared)(Parameters...), const char* name, Arguments... arguments) {
  return reinterpret_cast<decltype(declared)>(find(name))(arguments...);  // NOLINT
}

}  // namespace

extern "C" {

const char* archive_error_string(archive* from) {
  return pass_on(&archive_error_string, "archive_error_string", from);
}

archive_entry* archive_entry_new() {
  return pass_on(&archive_entry_new, "archive_entry_new");
}
void archive_entry_free(archive_entry* entry) {
  pass_on(&archive_entry_free, "archive_entry_free", entry);
}
mode_t archive_entry_filetype(archive_entry* entry) {
  return pass_on(&archive_entry_filetype, "archive_entry_filetype", entry);
}
const char* archive_entry_hardlink(archive_entry* entry) {
  return pass_on(&archive_entry_hardlink, "archive_entry_hardlink", entry);
}
const char* archive_entry_pathname(archive_entry* entry) {
  return pass_on(&archive_entry_pathname, "archive_entry_pathname", entry);
}
void archive_entry_set_filetype(archive_entry* entry, unsigned type) {
  pass_on(&archive_entry_set_filetype, "archive_entry_set_filetype", entry, type);
}
void archive_entry_set_mtime(archive_entry* entry, time_t seconds, long nanoseconds) {
  pass_on(&archive_entry_set_mtime, "archive_entry_set_mtime", entry, seconds, nanoseconds);
}
void archive_entry_set_pathname(archive_entry* entry, const char* name) {
  pass_on(&archive_entry_set_pathname, "archive_entry_set_pathname", entry, name);
}
void archive_entry_set_perm(archive_entry* entry, mode_t mode) {
  pass_on(&archive_entry_set_perm, "archive_entry_set_perm", entry, mode);
}
void archive_entry_set_size(archive_entry* entry, la_int64_t bytes) {
  pass_on(&archive_entry_set_size, "archive_entry_set_size", entry, bytes);
}
void archive_entry_sparse_add_entry(archive_entry* entry, la_int64_t at, la_int64_t bytes) {
  pass_on(&archive_entry_sparse_add_entry, "archive_entry_sparse_add_entry", entry, at, bytes);
}

archive* archive_read_new() {
  return pass_on(&archive_read_new, "archive_read_new");
}
int archive_read_free(archive* in) {
  return pass_on(&archive_read_free, "archive_read_free", in);
}
int archive_read_support_filter_zstd(archive* in) {
  return pass_on(&archive_read_support_filter_zstd, "archive_read_support_filter_zstd", in);
}
int archive_read_support_format_tar(archive* in) {
  return pass_on(&archive_read_support_format_tar, "archive_read_support_format_tar", in);
}
int archive_read_open_filename(archive* in, const char* path, size_t block) {
  return pass_on(&archive_read_open_filename, "archive_read_open_filename", in, path, block);
}
int archive_read_next_header(archive* in, archive_entry** entry) {
  return pass_on(&archive_read_next_header, "archive_read_next_header", in, entry);
}
int archive_read_extract2(archive* in, archive_entry* entry, archive* out) {
  return pass_on(&archive_read_extract2, "archive_read_extract2", in, entry, out);
}

archive* archive_write_new() {
  return pass_on(&archive_write_new, "archive_write_new");
}
int archive_write_free(archive* out) {
  return pass_on(&archive_write_free, "archive_write_free", out);
}
int archive_write_add_filter_zstd(archive* out) {
  return pass_on(&archive_write_add_filter_zstd, "archive_write_add_filter_zstd", out);
}
int archive_write_set_format_pax_restricted(archive* out) {
  return pass_on(&archive_write_set_format_pax_restricted,
                 "archive_write_set_format_pax_restricted", out);
}
int archive_write_open_filename(archive* out, const char* path) {
  return pass_on(&archive_write_open_filename, "archive_write_open_filename", out, path);
}
int archive_write_header(archive* out, archive_entry* entry) {
  return pass_on(&archive_write_header, "archive_write_header", out, entry);
}
la_ssize_t archive_write_data(archive* out, const void* bytes, size_t count) {
  return pass_on(&archive_write_data, "archive_write_data", out, bytes, count);
}
int archive_write_close(archive* out) {
  return pass_on(&archive_write_close, "archive_write_close", out);
}
archive* archive_write_disk_new() {
  return pass_on(&archive_write_disk_new, "archive_write_disk_new");
}
int archive_write_disk_set_options(archive* out, int flags) {
  return pass_on(&archive_write_disk_set_options, "archive_write_disk_set_options", out, flags);
}

}  // extern "C"
