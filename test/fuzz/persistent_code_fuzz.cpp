// SPDX-License-Identifier: Apache-2.0
// Reads persistent cache files made of arbitrary parts, and of arbitrary bytes after a valid key.
// The result must be a refusal or usable translations.
#include <cstdlib>

#include <fuzzer/FuzzedDataProvider.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptrace/codecache/persist/persistent_file.hpp"
#include "ptrace/codecache/translation/recorded_values.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace {

using namespace backtrail;
using namespace backtrail::tracee::cache;
using Bytes = std::vector<std::uint8_t>;

template <typename T>
using Elements = std::vector<T>;

/// Fills `out` with up to 64 elements of arbitrary bytes.
template <typename T>
void take(FuzzedDataProvider& input, std::vector<T>& out) {
  out.resize(input.ConsumeIntegralInRange<std::size_t>(0, 64));
  for (T& element : out) (void)input.ConsumeData(&element, sizeof element);
}

PersistentPieces pieces_of(const PersistentArrays<Elements>& parts) {
  return {{parts.modules}, {parts.code},          {parts.blocks},       {parts.pc_map},
          {parts.logged},  {parts.branches},      {parts.exits},        {parts.weights},
          {parts.places},  {parts.ib_entries},    {parts.translations}, {parts.crossing},
          {parts.values},  {parts.value_offsets}, {parts.first_values}, {parts.exit_values}};
}

Bytes written(const PersistentPieces& parts) {
  const tracee::UniqueFd fd{::memfd_create("kept", MFD_CLOEXEC)};
  if (!write_persistent(fd.get(), "key", parts)) std::abort();
  Bytes bytes(static_cast<std::size_t>(::lseek(fd.get(), 0, SEEK_END)));
  if (::pread(fd.get(), bytes.data(), bytes.size(), 0) != std::ssize(bytes)) std::abort();
  return bytes;
}

void look_at(const std::shared_ptr<const PersistentCode>& code) {
  const PersistentView& parts = code->parts();
  const decoder::ExitTable exits{code->exits(code)};
  for (std::uint32_t number = 0; number < parts.exits.size(); ++number) {
    const auto exit = exits.find(number);
    if (!exit || exit->to != exits.target(number)) std::abort();
    for (std::size_t i = 0; i < exit->block.branches.size(); ++i) (void)exit->block.branch(i);
    (void)parts.places[number].kind(exit->kind);
    const auto values = exits.values().of_block(exit->block_number);
    if (exits.values().before_exit(number) > values.size()) std::abort();
  }
  for (const auto& [start, offset] : parts.translations) {
    if (!code->translation(start) || offset > parts.code.size()) std::abort();
  }
  for (const std::uint32_t number : parts.crossing) {
    if (!exits.find(number)) std::abort();
  }
  RecordedValues values;
  values.load(parts.value_offsets);
  for (const CodeBlock& block : parts.blocks) {
    (void)exits.block(block.logged);
    const std::size_t recorded = exits.values().of_block(block.logged).size();
    for (std::uint32_t within = 0; within < block.size; ++within) {
      const auto map_entry = code->map_entry(block, within);
      if (map_entry && values.count_at(block, within, *map_entry, exits) > recorded) std::abort();
    }
  }
  for (std::uint64_t offset = 0; offset <= parts.code.size(); ++offset) {
    (void)code->block_at(offset);
  }
}

PersistentPieces pieces_of(const PersistentView& view) {
  return {{view.modules}, {view.code},          {view.blocks},       {view.pc_map},
          {view.logged},  {view.branches},      {view.exits},        {view.weights},
          {view.places},  {view.ib_entries},    {view.translations}, {view.crossing},
          {view.values},  {view.value_offsets}, {view.first_values}, {view.exit_values}};
}

void look_at_written(const PersistentPieces& parts) {
  const auto bytes = std::make_shared<Bytes>(written(parts));
  if (const auto code = PersistentCode::from_bytes(*bytes, "key", bytes, false)) look_at(code);
}

/// Returns a file that ends with these bytes and has an invalid checksum.
Bytes with_head(std::span<const std::uint8_t> parts) {
  constexpr std::size_t kNoParts = 15 * sizeof(std::uint64_t);
  static const Bytes empty = written({});
  Bytes bytes{empty.begin(), empty.end() - kNoParts};
  bytes.insert(bytes.end(), parts.begin(), parts.end());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input{data, size};
  PersistentArrays<Elements> parts;
  for_each_part(parts, [&](auto& part) {
    take(input, part);
    return true;
  });
  look_at_written(pieces_of(parts));
  const Bytes file = with_head({data, size});
  if (const auto view = read_persistent(file, "key", true)) look_at_written(pieces_of(*view));
  (void)PersistentCode::from_bytes({data, size}, "key", nullptr, false);
  return 0;
}
