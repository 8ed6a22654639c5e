// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The document that gdb is reading in slices.

#include <optional>
#include <string>

#include "ptrace/tracee/thread_id.hpp"

namespace backtrail::server {

/// Keeps the last document, so that all its slices come from one moment. Reading offset 0 makes the
/// document anew.
class DocumentCache {
 public:
  struct Key {
    std::string object;
    std::string annex;
    tracee::ThreadId thread;
    bool operator==(const Key&) const = default;
  };

  /// Returns the document stored under `key`, or null if another one has replaced it.
  [[nodiscard]] const std::string* find(const Key& key) const {
    return key_ == key ? &document_ : nullptr;
  }
  const std::string& store(Key key, std::string document) {
    key_ = std::move(key);
    document_ = std::move(document);
    return document_;
  }
  void clear() {
    key_.reset();
    document_ = {};
  }

 private:
  std::optional<Key> key_;
  std::string document_;
};

}  // namespace backtrail::server
