// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Translates programs ahead, without running them, so that their first recorded run is as fast as
/// later ones.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "arch/base/result.hpp"
#include "ptrace/codecache/persist/persistent_store.hpp"

namespace backtrail::server {

/// The result of warm().
struct Warmed {
  std::size_t superblocks = 0;  ///< Translated now; 0 if all was there already.
  bool libraries = false;       ///< Includes the libraries that the dynamic linker loads.
  bool kept = false;            ///< False if the store's folder could not be written.
};

/// Translates a program's functions, and those of the libraries that it is linked with, and puts
/// them into the store. Nothing of the program is executed: the dynamic linker maps its libraries,
/// as for ldd(1), but only glibc's can do that; for other programs the libraries are left out.
/// `program` is looked up in PATH if it has no slash. The caller's standard output should be
/// /dev/null, for the dynamic linker lists the libraries there. Errors: those of launching and
/// tracing; kUnsupported if the program cannot be translated.
Result<Warmed> warm(const std::string& program,
                    const std::shared_ptr<tracee::cache::PersistentStore>& store,
                    std::uint64_t most_bytes);

}  // namespace backtrail::server
