#include "ptrace/cache/kept_code.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ptrace/cache/build_identity.hpp"
#include "ptrace/cache/packed_rows.hpp"

namespace backtrail::tracee::cache {
namespace translate = arch::x86::translate;
namespace {

constexpr std::uint64_t kMagic = 0x31747065'6b746342ULL;
/// More than any real file; bounds what a damaged one can make us allocate.
constexpr std::uint64_t kMostBytes = 256ULL << 20;

/// Eight sums side by side: one would wait for its multiplications.
std::uint64_t checksum(std::span<const std::uint8_t> bytes) {
  constexpr std::uint64_t kFactor = 0xff51'afd7'ed55'8ccdULL;
  std::array<std::uint64_t, 8> sums{1, 2, 3, 4, 5, 6, 7, 8};
  while (bytes.size() >= sizeof sums) {
    std::array<std::uint64_t, 8> words{};
    std::memcpy(words.data(), bytes.data(), sizeof words);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] = (sums[i] ^ words[i]) * kFactor;
      sums[i] ^= sums[i] >> 29U;
    }
    bytes = bytes.subspan(sizeof sums);
  }
  for (const std::uint8_t byte : bytes) sums[0] = (sums[0] ^ byte) * kFactor;
  std::uint64_t sum = 0;
  for (const std::uint64_t each : sums) sum = (sum ^ each) * kFactor;
  return sum;
}

constexpr std::size_t kFileAlignment = 8;
constexpr auto kLastExitKind = static_cast<std::uint8_t>(translate::ExitKind::kStale);
constexpr auto kLastSpecial = static_cast<std::uint8_t>(translate::Special::kSection);
constexpr std::int64_t kNoPc = std::numeric_limits<std::int32_t>::min();

class Writer {
 public:
  template <typename T>
  void value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);  // NOLINT
    bytes.insert(bytes.end(), raw, raw + sizeof value);
  }
  template <typename T>
  void array(std::span<const T> values) {
    value<std::uint64_t>(values.size());
    const auto* raw = reinterpret_cast<const std::uint8_t*>(values.data());  // NOLINT
    bytes.insert(bytes.end(), raw, raw + values.size_bytes());
    while (bytes.size() % kFileAlignment != 0) bytes.push_back(0);
  }
  std::vector<std::uint8_t> bytes;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : rest_{bytes} {}
  template <typename T>
  bool value(T& out) {
    if (rest_.size() < sizeof out) return false;
    std::memcpy(&out, rest_.data(), sizeof out);
    rest_ = rest_.subspan(sizeof out);
    return true;
  }
  template <typename T>
  bool array(std::span<const T>& out) {
    std::uint64_t count = 0;
    if (!value(count) || count > rest_.size() / sizeof(T)) return false;
    // Everything lies at multiples of kFileAlignment.
    static_assert(alignof(T) <= kFileAlignment && std::is_trivially_copy_constructible_v<T>);
    out = {reinterpret_cast<const T*>(rest_.data()), count};  // NOLINT
    std::uint64_t taken = count * sizeof(T);
    taken += (kFileAlignment - taken % kFileAlignment) % kFileAlignment;
    if (taken > rest_.size()) return false;
    rest_ = rest_.subspan(taken);
    return true;
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::uint8_t> rest_;
};

std::optional<std::int32_t> distance_from(TraceeAddr head, TraceeAddr at) {
  // Where there is no address none is given.
  if (at == TraceeAddr{}) return kNoPc;
  const auto distance = static_cast<std::int64_t>(at - head);
  const auto narrow = static_cast<std::int32_t>(distance);
  if (narrow != distance || narrow == kNoPc) return std::nullopt;
  return narrow;
}

TraceeAddr at_distance(TraceeAddr head, std::int32_t distance) {
  if (distance == kNoPc) return TraceeAddr{};
  return TraceeAddr{head.value() + static_cast<std::uint64_t>(std::int64_t{distance})};
}

template <typename Archive, typename Parts>
bool for_each_part(Archive&& archive, Parts& parts) {
  return archive(parts.modules) && archive(parts.code) && archive(parts.blocks) &&
         archive(parts.rows) && archive(parts.branches) && archive(parts.exits) &&
         archive(parts.pads) && archive(parts.bodies);
}

}  // namespace

decoder::LoggedExitKind logged_kind(translate::ExitKind kind) {
  switch (kind) {
    case translate::ExitKind::kDirect:
      return decoder::LoggedExitKind::kDirect;
    case translate::ExitKind::kIndirect:
      return decoder::LoggedExitKind::kIndirect;
    default:
      return decoder::LoggedExitKind::kContinue;
  }
}

bool KeptCode::consistent() const {
  const std::uint64_t code = view_.code.size();
  std::uint64_t behind = 0;
  for (const KeptBlock& block : view_.blocks) {
    if (block.offset < behind || block.size == 0 || block.row_bytes == 0) return false;
    behind = std::uint64_t{block.offset} + block.size;
    if (behind > code) return false;
    if (std::uint64_t{block.first_row} + block.row_bytes > view_.rows.size()) return false;
    if (std::uint64_t{block.first_branch} + block.branches > view_.branches.size()) return false;
  }
  const auto link_fits = [=](std::uint64_t link) {
    return link < code && link + sizeof(std::uint32_t) <= code;
  };
  for (const KeptExit& exit : view_.exits) {
    if (exit.block >= view_.blocks.size() || !link_fits(exit.link)) return false;
    if (exit.passed > view_.blocks[exit.block].branches || exit.kind > kLastExitKind ||
        exit.special > kLastSpecial) {
      return false;
    }
  }
  for (const KeptPad& pad : view_.pads) {
    if (pad.address >= code || !link_fits(pad.body_link) || !link_fits(pad.conflict_link)) {
      return false;
    }
  }
  for (const auto& [head, offset] : view_.bodies) {
    if (offset >= code) return false;
  }
  return std::is_sorted(view_.bodies.begin(), view_.bodies.end());
}

std::shared_ptr<const KeptCode> KeptCode::over(const KeptView& view,
                                               std::shared_ptr<const void> owner, bool whole) {
  std::shared_ptr<KeptCode> kept{new KeptCode};
  kept->view_ = view;
  kept->owner_ = std::move(owner);
  if (!whole && !kept->consistent()) return nullptr;
  return kept;
}

std::shared_ptr<const KeptCode> KeptCode::make(KeptParts parts) {
  const auto owned = std::make_shared<const KeptParts>(std::move(parts));
  return over({owned->modules, owned->code, owned->blocks, owned->rows, owned->branches,
               owned->exits, owned->pads, owned->bodies},
              owned, false);
}

KeptParts KeptCode::copy() const {
  const auto copied = [](auto from) { return std::vector(from.begin(), from.end()); };
  return {copied(view_.modules),  {},  // the code is what is in memory by now
          copied(view_.blocks),   copied(view_.rows),
          copied(view_.branches), copied(view_.exits),
          copied(view_.pads),     copied(view_.bodies)};
}

const std::shared_ptr<const decoder::ExitTable>& KeptCode::exits() const {
  if (exits_) return exits_;
  logged_.reserve(view_.blocks.size());
  for (const KeptBlock& block : view_.blocks) logged_.push_back(logged(block));
  auto exits = std::make_shared<decoder::ExitTable>();
  for (std::uint32_t number = 0; number < view_.exits.size(); ++number) {
    const translate::Exit each = exit(number);
    exits->add_exit({&logged_[view_.exits[number].block], each.from, each.to, each.passed,
                     logged_kind(each.kind), each.executed});
  }
  exits_ = std::move(exits);
  return exits_;
}

std::optional<std::uint32_t> KeptCode::body(TraceeAddr head) const {
  const auto found =
      std::lower_bound(view_.bodies.begin(), view_.bodies.end(), head,
                       [](const auto& each, TraceeAddr at) { return each.first < at; });
  if (found == view_.bodies.end() || found->first != head) return std::nullopt;
  return found->second;
}

const KeptBlock* KeptCode::block_at(std::uint64_t offset) const {
  const auto after =
      std::upper_bound(view_.blocks.begin(), view_.blocks.end(), offset,
                       [](std::uint64_t at, const KeptBlock& block) { return at < block.offset; });
  if (after == view_.blocks.begin()) return nullptr;
  const KeptBlock& block = *std::prev(after);
  return offset < std::uint64_t{block.offset} + block.size ? &block : nullptr;
}

std::optional<KeptExit> KeptExit::of(const translate::Exit& exit, TraceeAddr head) {
  const auto from = distance_from(head, exit.from);
  const auto to = distance_from(head, exit.to);
  if (!from || !to) return std::nullopt;
  return KeptExit{.from = *from,
                  .to = *to,
                  .passed = exit.passed,
                  .executed = exit.executed,
                  .kind = static_cast<std::uint8_t>(exit.kind),
                  .special = static_cast<std::uint8_t>(exit.special)};
}

translate::Exit KeptCode::exit(std::uint32_t number) const {
  const KeptExit& kept = view_.exits[number];
  const TraceeAddr head = view_.blocks[kept.block].head;
  return {.number = number,
          .kind = static_cast<translate::ExitKind>(kept.kind),
          .special = static_cast<translate::Special>(kept.special),
          .passed = kept.passed,
          .executed = kept.executed,
          .from = at_distance(head, kept.from),
          .to = at_distance(head, kept.to)};
}

std::optional<translate::PcRow> KeptCode::row(const KeptBlock& block, std::uint64_t within) const {
  return row_at(view_.rows.subspan(block.first_row, block.row_bytes), block.head, within);
}

decoder::LoggedBlock KeptCode::logged(const KeptBlock& block) const {
  return {block.head, view_.branches.subspan(block.first_branch, block.branches)};
}

std::vector<std::uint8_t> KeptCode::to_bytes(const std::string& key) const {
  Writer writer;
  // In one piece, which is tens of megabytes of a large program.
  constexpr std::uint64_t kMostOfTheRest = 4096;
  std::uint64_t size = kMostOfTheRest + key.size();
  for_each_part(
      [&](const auto& part) {
        size += part.size_bytes() + sizeof(std::uint64_t) + kFileAlignment;
        return true;
      },
      view_);
  writer.bytes.reserve(size);
  writer.value(kMagic);
  writer.value(std::uint64_t{0});  // the checksum of what follows
  writer.array(std::span<const char>{build_identity()});
  writer.array(std::span<const char>{key});
  for_each_part(
      [&](const auto& part) {
        writer.array(part);
        return true;
      },
      view_);
  const std::uint64_t sum = checksum(std::span{writer.bytes}.subspan(2 * sizeof kMagic));
  std::memcpy(&writer.bytes[sizeof kMagic], &sum, sizeof sum);
  return std::move(writer.bytes);
}

std::shared_ptr<const KeptCode> KeptCode::from_bytes(std::span<const std::uint8_t> bytes,
                                                     const std::string& key,
                                                     std::shared_ptr<const void> owner,
                                                     bool whole) {
  Reader reader{bytes};
  std::uint64_t magic = 0;
  std::uint64_t sum = 0;
  std::span<const char> build;
  std::span<const char> their_key;
  KeptView parts;
  if (bytes.size() > kMostBytes || !reader.value(magic) || magic != kMagic || !reader.value(sum) ||
      (!whole && sum != checksum(bytes.subspan(2 * sizeof magic))) || !reader.array(build) ||
      std::string(build.begin(), build.end()) != build_identity() || !reader.array(their_key) ||
      std::string(their_key.begin(), their_key.end()) != key ||
      !for_each_part([&](auto& part) { return reader.array(part); }, parts) || !reader.at_end()) {
    return nullptr;
  }
  return over(parts, std::move(owner), whole);
}

}  // namespace backtrail::tracee::cache
