// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/persistent_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include <unistd.h>

#include "ptrace/codecache/persist/checksum.hpp"
#include "ptrace/codecache/program/build_identity.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kMagic = 0x32747065'6b746342ULL;
constexpr std::size_t kHeaderBytes = 2 * sizeof kMagic;
constexpr std::size_t kFileAlignment = 8;

template <typename T>
std::span<const std::uint8_t> raw(std::span<const T> values) {
  static_assert(std::is_trivially_copy_constructible_v<T> && alignof(T) <= kFileAlignment);
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};  // NOLINT
}

bool write_at(int fd, std::span<const std::uint8_t> bytes, std::uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    at += static_cast<std::uint64_t>(put);
  }
  return true;
}

class Writer {
 public:
  explicit Writer(int fd) : fd_{fd} { buffer_.reserve(kBufferBytes); }
  void bytes(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), kBufferBytes - buffer_.size()));
      buffer_.insert(buffer_.end(), part.begin(), part.end());
      bytes = bytes.subspan(part.size());
      if (buffer_.size() == kBufferBytes) flush();
    }
  }
  template <typename T>
  void array(const PersistentPieceList<T>& pieces) {
    std::uint64_t count = 0;
    for (const auto& piece : pieces) count += piece.size();
    bytes(raw(std::span<const std::uint64_t>{&count, 1}));
    for (const auto& piece : pieces) bytes(raw(piece));
    constexpr std::array<std::uint8_t, kFileAlignment> kZeros{};
    const std::uint64_t end = at_ + buffer_.size();
    bytes(std::span{kZeros}.first((kFileAlignment - end % kFileAlignment) % kFileAlignment));
  }
  bool finish() {
    flush();
    const std::array<std::uint64_t, 2> header{kMagic, sum_.value()};
    return good_ && write_at(fd_, raw(std::span<const std::uint64_t>{header}), 0);
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{256} << 10U;
  static_assert(kBufferBytes % Checksum::kAtOnce == 0);
  void flush() {
    sum_.add(buffer_);
    good_ =
        good_ && at_ + buffer_.size() <= kMostPersistentFileBytes && write_at(fd_, buffer_, at_);
    at_ += buffer_.size();
    buffer_.clear();
  }

  int fd_;
  bool good_ = true;
  Checksum sum_;
  std::uint64_t at_ = kHeaderBytes;
  std::vector<std::uint8_t> buffer_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : rest_{bytes} {}
  bool value(std::uint64_t& out) {
    if (rest_.size() < sizeof out) return false;
    std::memcpy(&out, rest_.data(), sizeof out);
    rest_ = rest_.subspan(sizeof out);
    return true;
  }
  template <typename T>
  bool array(std::span<const T>& out) {
    std::uint64_t count = 0;
    if (!value(count) || count > rest_.size() / sizeof(T)) return false;
    // All arrays lie at multiples of kFileAlignment.
    out = {reinterpret_cast<const T*>(rest_.data()), count};  // NOLINT
    std::uint64_t taken = count * sizeof(T);
    taken += (kFileAlignment - taken % kFileAlignment) % kFileAlignment;
    if (taken > rest_.size()) return false;
    rest_ = rest_.subspan(taken);
    return true;
  }
  bool is(const std::string& expected) {
    std::span<const char> text;
    return array(text) && std::equal(text.begin(), text.end(), expected.begin(), expected.end());
  }
  [[nodiscard]] std::span<const std::uint8_t> rest() const { return rest_; }

 private:
  std::span<const std::uint8_t> rest_;
};

std::uint64_t checksum(std::span<const std::uint8_t> bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

}  // namespace

bool write_persistent(int fd, const std::string& key, const PersistentPieces& parts) {
  Writer writer{fd};
  writer.array(PersistentPieceList<char>{build_identity()});
  writer.array(PersistentPieceList<char>{key});
  for_each_part(parts, [&](const auto& part) {
    writer.array(part);
    return true;
  });
  return writer.finish();
}

std::optional<PersistentView> read_persistent(std::span<const std::uint8_t> bytes,
                                              const std::string& key, bool whole) {
  Reader reader{bytes};
  std::uint64_t magic = 0;
  std::uint64_t sum = 0;
  PersistentView parts;
  if (bytes.size() > kMostPersistentFileBytes || !reader.value(magic) || magic != kMagic ||
      !reader.value(sum) || (!whole && sum != checksum(reader.rest())) ||
      !reader.is(build_identity()) || !reader.is(key) ||
      !for_each_part(parts, [&](auto& part) { return reader.array(part); }) ||
      !reader.rest().empty()) {
    return std::nullopt;
  }
  return parts;
}

}  // namespace backtrail::tracee::cache
