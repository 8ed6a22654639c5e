#pragma once
/// @file
/// How a program ended: the core's signal, and what the recorder noted beside it.

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
  /// `core` is borrowed.
  explicit EndFacts(const CoreFile& core);

  /// Fills in what a report says of the program and its end, but for its notes and threads.
  void tell(Report& report) const;
  /// How it ended, in a word or two.
  [[nodiscard]] std::string word() const;
  /// A signal ended it.
  [[nodiscard]] bool by_signal() const { return core_.threads().front().signal != 0; }
  /// That signal was sent by a process, perhaps by the program itself; nothing faulted.
  [[nodiscard]] bool was_sent() const { return signal_.sent; }

  /// Where the recorder saw a sanitizer's report begin.
  struct Reported {
    std::uint32_t tid = 0;     ///< The thread.
    std::uint64_t number = 0;  ///< How many records it had then.
  };
  [[nodiscard]] const std::optional<Reported>& reported() const { return reported_; }
  /// Appends what there is to say about sanitizers' reports.
  void add_report_notes(std::vector<std::string>& notes) const;

  /// What the handler was called for that the thread died in: it may have raised another signal.
  [[nodiscard]] std::optional<ReportSignal> first_signal(const ReportThread& died) const;

 private:
  [[nodiscard]] std::string fact(const char* name) const;
  [[nodiscard]] std::string ending() const;

  const CoreFile& core_;
  SignalText signal_;  ///< Of the thread that died.
  std::optional<Reported> reported_;
};

}  // namespace backtrail::decoder
