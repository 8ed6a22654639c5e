// SPDX-License-Identifier: Apache-2.0
// qXfer: reads documents in slices and writes one object.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "server/handlers/handlers.hpp"
#include "server/handlers/qxfer_objects.hpp"
#include "server/rsp/binary_escape.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

struct QXferObject {
  std::string_view name;
  Document (*make)(SessionContext& context, std::string_view annex);
  bool (*offered)(SessionContext& context);
  /// An offset past the end is an error, not the end.
  bool strict_end = false;
  /// Making the document takes data out of the target, so only offset 0 makes it.
  bool consumes = false;
};

bool always(SessionContext& /*context*/) {
  return true;
}
bool if_tracing(SessionContext& context) {
  return context.target.branch_tracing() != nullptr;
}

constexpr std::array kObjects = {
    QXferObject{"auxv", auxv_document, always},
    QXferObject{"exec-file", exec_file_document, always},
    QXferObject{"features", features_document, always, true},
    QXferObject{"threads", threads_document, always},
    QXferObject{"siginfo", siginfo_document, always},
    QXferObject{"libraries-svr4", libraries_document, always},
    QXferObject{"osdata", osdata_document, always},
    QXferObject{"btrace", btrace_document, if_tracing, false, true},
    QXferObject{"btrace-conf", btrace_conf_document, if_tracing},
};

/// Returns "m" (more follows) or "l" (last slice) and as much of the document as fits once escaped.
Reply slice(const std::string& document, std::uint64_t offset, std::uint64_t length,
            bool strict_end) {
  if (offset > document.size() && strict_end) return Reply::error();
  if (offset >= document.size()) return Reply::text("l");
  const std::size_t wanted =
      static_cast<std::size_t>(std::min<std::uint64_t>(length, document.size() - offset));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(document.data()) + offset;
  std::string out = "m";
  const std::size_t taken =
      rsp::append_escaped(std::span{bytes, wanted}, Session::kPacketSize - 2, out);
  if (offset + taken == document.size()) out[0] = 'l';
  // An "m" without data would make the client ask for ever.
  if (taken == 0 && out[0] == 'm') return Reply::error();
  return Reply::text(std::move(out));
}

/// Handles OBJECT:read:ANNEX:OFFSET,LENGTH. The annex holds no colon.
Reply read(SessionContext& context, const QXferObject& object, PacketText text) {
  const std::string_view annex = text.take_field(':');
  const auto range = take_hex_pair(text);
  if (!range || !text.at_end()) return Reply::error();
  DocumentCache::Key key{std::string{object.name}, std::string{annex},
                         context.selected_thread().value_or(ThreadId{})};
  if (range->first != 0) {
    if (const std::string* cached = context.documents.find(key)) {
      return slice(*cached, range->first, range->second, object.strict_end);
    }
    if (object.consumes) return Reply::error();
  }
  Document document = object.make(context, annex);
  if (!document) {
    context.documents.clear();
    return document.error();
  }
  return slice(context.documents.store(std::move(key), std::move(*document)), range->first,
               range->second, object.strict_end);
}

/// Handles siginfo:write::OFFSET:DATA. The reply is the number of bytes written.
Reply write_siginfo(SessionContext& context, PacketText text) {
  if (!text.take_field(':').empty()) return Reply::error();
  const auto offset = text.take_hex();
  if (!offset || !text.take(':')) return Reply::error();
  const auto data = rsp::unescape_binary(text.rest());
  const auto thread = context.selected_thread();
  if (!data || !thread) return Reply::error();
  auto siginfo = context.target.siginfo(*thread);
  if (!siginfo || *offset > siginfo->size() || data->size() > siginfo->size() - *offset) {
    return Reply::error();
  }
  std::ranges::copy(*data, siginfo->begin() + static_cast<std::ptrdiff_t>(*offset));
  if (const auto written = context.target.set_siginfo(*thread, *siginfo); !written) {
    return Reply::from_write(written, context.error_form(), context.target.past_control());
  }
  context.documents.clear();
  return Reply::text(fmt::format("{:x}", data->size()));
}

Reply transfer(SessionContext& context, std::string_view arguments) {
  PacketText text{arguments};
  const std::string_view name = text.take_field(':');
  const auto object = std::ranges::find(kObjects, name, &QXferObject::name);
  if (object == kObjects.end() || !object->offered(context)) return Reply::unknown();
  if (text.take("read:")) return read(context, *object, text);
  if (name == "siginfo" && text.take("write:")) return write_siginfo(context, text);
  return Reply::unknown();
}

constexpr std::array kQxferPackets = {
    PacketEntry{"qXfer:", PacketMatch::kPrefix, transfer},
};

}  // namespace

std::span<const PacketEntry> qxfer_packets() {
  return kQxferPackets;
}

}  // namespace backtrail::server::handlers
