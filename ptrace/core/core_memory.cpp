#include "ptrace/core/core_memory.hpp"

#include <algorithm>
#include <array>

#include <elf.h>

namespace backtrail::tracee {
namespace {

constexpr std::size_t kFirstPageBytes = 4096;

}  // namespace

CoreMemory::CoreMemory(const decoder::CoreFile& core, std::vector<std::string> roots)
    : core_{core}, roots_{std::move(roots)} {
  roots_.emplace_back();
}

CoreMemory::~CoreMemory() = default;

std::size_t CoreMemory::read(TraceeAddr address, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    std::size_t got = core_.read(address + done, out.subspan(done));
    if (got == 0) got = read_file(address + done, out.subspan(done));
    if (got == 0) break;
    done += got;
  }
  return done;
}

std::size_t CoreMemory::read_constant(TraceeAddr address, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const TraceeAddr at = address + done;
    const decoder::CoreSegment* segment = core_.segment_at(at);
    if (segment == nullptr || (segment->flags & PF_W) != 0) break;
    const std::uint64_t left = segment->memory_bytes - (at - segment->start);
    const auto wanted = out.subspan(done, std::min<std::uint64_t>(out.size() - done, left));
    const std::size_t in_core = core_.read(at, wanted);
    const bool code = (segment->flags & PF_X) != 0;
    const std::size_t in_file = in_core != 0 && code ? 0 : read_file(at, wanted);
    std::size_t got = in_core != 0 && code ? in_core : in_file;
    if (in_core != 0 && !code) {
      // What the program wrote before it gave up the permission (RELRO) differs from the file.
      std::vector<std::uint8_t> kept(std::min(in_core, in_file));
      kept.resize(core_.read(at, kept));
      const auto differs = std::ranges::mismatch(kept, wanted.first(kept.size())).in1;
      got = static_cast<std::size_t>(differs - kept.begin());
    }
    if (got == 0) break;
    done += got;
  }
  return done;
}

std::size_t CoreMemory::read_file(TraceeAddr address, std::span<std::uint8_t> out) {
  const decoder::CoreMapping* mapping = core_.mapping_at(address);
  if (mapping == nullptr) return 0;
  const Image& found = image(mapping->path);
  if (!found.file) return 0;
  const auto bytes = found.file->bytes();
  const std::uint64_t offset = mapping->file_offset + (address - mapping->start);
  if (offset >= bytes.size()) return 0;
  const std::uint64_t most =
      std::min<std::uint64_t>({out.size(), bytes.size() - offset, mapping->end - address});
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), most, out.begin());
  return static_cast<std::size_t>(most);
}

std::optional<std::string> CoreMemory::find_file(const std::string& path) {
  const Image& found = image(path);
  if (!found.file) return std::nullopt;
  return found.path;
}

CoreMemory::Image& CoreMemory::image(const std::string& path) {
  const auto [place, is_new] = images_.try_emplace(path);
  Image& image = place->second;
  if (!is_new) return image;
  bool other = false;
  for (const std::string& root : roots_) {
    auto file = MappedFile::open(root + path);
    if (!file) continue;
    if (!is_the_mapped_one(path, *file)) {
      other = true;
      continue;
    }
    image.path = root + path;
    image.file.emplace(std::move(*file));
    return image;
  }
  problems_.push_back(path + (other ? " is not the file that the program ran with"
                                    : " is not there; code and data in it cannot be read"));
  return image;
}

bool CoreMemory::is_the_mapped_one(const std::string& path, const MappedFile& file) const {
  for (const decoder::CoreMapping& mapping : core_.mappings()) {
    if (mapping.path != path || mapping.file_offset != 0) continue;
    std::array<std::uint8_t, kFirstPageBytes> page{};
    const std::size_t got = core_.read(mapping.start, page);
    const auto bytes = file.bytes();
    const std::size_t count = std::min(got, bytes.size());
    return (got == 0 || count != 0) &&
           std::equal(page.begin(), page.begin() + count, bytes.begin());
  }
  return true;
}

}  // namespace backtrail::tracee
