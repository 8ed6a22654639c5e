// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a program ended: the signal in the core, and the recorder's notes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/report/report.hpp"
#include "decoder/report/signal_text.hpp"

namespace backtrail::decoder {

class EndFacts {
 public:
  /// Borrows `core`.
  explicit EndFacts(const CoreFile& core);

  /// Fills in the program and how it ended; leaves notes and threads alone.
  void tell(Report& report) const;
  /// Returns how the program ended, in a word or two.
  [[nodiscard]] std::string word() const;
  /// Returns true if a signal ended the program.
  [[nodiscard]] bool by_signal() const { return core_.threads().front().signal != 0; }
  /// Returns true if a process sent that signal, perhaps the program itself, and no instruction
  /// faulted.
  [[nodiscard]] bool was_sent() const { return signal_.sent; }

  /// Where a sanitizer's report began.
  struct Reported {
    std::uint32_t tid = 0;     ///< The thread that reported.
    std::uint64_t number = 0;  ///< Records that the thread had executed by then.
  };
  [[nodiscard]] const std::optional<Reported>& reported() const { return reported_; }
  /// Appends notes about sanitizer reports.
  void add_report_notes(std::vector<std::string>& notes) const;

  /// Returns the signal whose handler the thread died in, which may differ from the signal that
  /// killed it; nullopt if unknown.
  [[nodiscard]] std::optional<ReportSignal> first_signal(const ReportThread& died) const;

 private:
  [[nodiscard]] std::string fact(const char* name) const;
  [[nodiscard]] std::string ending() const;

  const CoreFile& core_;
  SignalText signal_;  ///< Signal of the thread that died.
  std::optional<Reported> reported_;
};

}  // namespace backtrail::decoder
