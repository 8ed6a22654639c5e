// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A handler's answer to a packet.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "arch/base/result.hpp"
#include "server/rsp/error_reply.hpp"
#include "server/target/past_control.hpp"

namespace backtrail::server {

/// The packet to send now; none if the packet has no answer or is answered later (a stop reply).
class Reply {
 public:
  static Reply text(std::string payload) { return Reply{std::move(payload)}; }
  static Reply ok() { return Reply{"OK"}; }
  /// Empty packet: the request is not supported.
  static Reply unknown() { return Reply{""}; }
  static Reply none() { return Reply{std::nullopt}; }
  /// "E01".
  static Reply error() { return Reply{rsp::error_reply()}; }
  static Reply error(std::uint8_t number) { return Reply{rsp::error_reply(number)}; }
  /// "E.text".
  static Reply error(std::string_view text) { return Reply{rsp::error_text_reply(text)}; }
  /// "E.text" if the client shows it, else "E01".
  static Reply error(rsp::ErrorForm form, std::string_view text) {
    return form == rsp::ErrorForm::kText ? error(text) : error();
  }
  static Reply error(const Error& error, rsp::ErrorForm form) {
    return Reply{rsp::error_reply(error, form)};
  }
  /// "OK", or "E01".
  static Reply from(const Result<void>& result) { return result ? ok() : error(); }
  /// "OK" or an error. A write to a recording or to the past fails with EROFS, and no other write
  /// does; that error has a text of `past`'s, which is null for targets without a past.
  static Reply from_write(const Result<void>& result, rsp::ErrorForm form,
                          const PastControl* past) {
    const bool recorded = !result && result.error().is(std::errc::read_only_file_system);
    return recorded && past != nullptr ? error(form, past->why_unchangeable()) : from(result);
  }

  [[nodiscard]] std::optional<std::string>& payload() { return payload_; }

 private:
  explicit Reply(std::optional<std::string> payload) : payload_{std::move(payload)} {}

  std::optional<std::string> payload_;
};

}  // namespace backtrail::server
