// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/call_words.hpp"

namespace backtrail::decoder {

const char* name_of(CallBegin begin) {
  switch (begin) {
    case CallBegin::kCalled:
      return "called";
    case CallBegin::kTailCalled:
      return "tail-called";
    case CallBegin::kSignal:
      return "signal";
    case CallBegin::kResumed:
      return "resumed";
    case CallBegin::kUnseen:
      return "unseen";
  }
  return "";
}

const char* name_of(CallEnd end) {
  switch (end) {
    case CallEnd::kReturned:
      return "returned";
    case CallEnd::kTailCalled:
      return "tail-called";
    case CallEnd::kUnwound:
      return "unwound";
    case CallEnd::kGap:
      return "gap";
    case CallEnd::kSwitched:
      return "switched";
    case CallEnd::kOpen:
      return "open";
  }
  return "";
}

}  // namespace backtrail::decoder
