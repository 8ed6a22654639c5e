// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Saved translations, as a later process loads them.

#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptrace/codecache/persist/persistent_code.hpp"
#include "ptrace/codecache/persist/persistent_file.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {

/// Writes the pieces to a file and reads them back; `whole`: without looking whether they make
/// sense. nullptr if they do not.
inline std::shared_ptr<const PersistentCode> loaded_pieces(const PersistentPieces& pieces,
                                                           bool whole) {
  const UniqueFd fd{::memfd_create("saved", MFD_CLOEXEC)};
  EXPECT_TRUE(write_persistent(fd.get(), "key", pieces));
  const auto size = static_cast<std::size_t>(::lseek(fd.get(), 0, SEEK_END));
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(size);
  EXPECT_EQ(::pread(fd.get(), bytes->data(), size, 0), static_cast<ssize_t>(size));
  return PersistentCode::from_bytes(*bytes, "key", bytes, whole);
}

}  // namespace backtrail::tracee::cache
