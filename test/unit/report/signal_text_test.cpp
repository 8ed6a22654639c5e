// SPDX-License-Identifier: Apache-2.0
// Tests descriptions of signals.
#include "decoder/report/signal_text.hpp"

#include <csignal>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch/base/bytes.hpp"
#include "decoder/report/report.hpp"

namespace backtrail::decoder {
namespace {

using ::testing::HasSubstr;

std::vector<std::uint8_t> siginfo(int signal, int code, std::uint64_t field) {
  std::vector<std::uint8_t> bytes(128);
  store_le(bytes.data(), static_cast<std::uint32_t>(signal));
  store_le(bytes.data() + 8, static_cast<std::uint32_t>(code));
  store_le(bytes.data() + 16, field);
  return bytes;
}

SignalText text(int signal, int code, std::uint64_t field, std::uint64_t sp = 0x7000000) {
  return signal_text(signal, siginfo(signal, code, field), arch::Isa::kAmd64, TraceeAddr{0x401000},
                     TraceeAddr{sp});
}

TEST(SignalText, AddressesAreInTheSentence) {
  const SignalText far = text(SIGSEGV, SEGV_MAPERR, 0x123456789);
  EXPECT_THAT(far.words, HasSubstr("0x123456789"));
  EXPECT_EQ(far.address, TraceeAddr{0x123456789});
  EXPECT_THAT(text(SIGSEGV, SEGV_MAPERR, 8).words, HasSubstr("null pointer"));
  EXPECT_THAT(text(SIGSEGV, SEGV_MAPERR, 0x401000).words, HasSubstr("execution jumped there"));
  EXPECT_THAT(text(SIGSEGV, SEGV_MAPERR, 0x6fffff8).words, HasSubstr("possible stack overflow"));
}

TEST(SignalText, WhatTheKernelDoesNotKnowIsNotSaid) {
  const SignalText refused = text(SIGSEGV, SI_KERNEL, 0);
  EXPECT_FALSE(refused.address);
  EXPECT_THAT(refused.words, HasSubstr("the CPU reports no address"));
  // Privileged instructions such as hlt come this way, too, and access no memory.
  EXPECT_THAT(refused.words, HasSubstr("or a privileged instruction"));
}

TEST(SignalText, WhoSentItIs) {
  EXPECT_THAT(text(SIGABRT, SI_TKILL, 77).words, HasSubstr("process 77"));
  EXPECT_THAT(text(SIGTERM, SI_USER, 78).words, HasSubstr("78 with kill"));
}

TEST(SignalText, WithoutSiginfoOnlyTheSignal) {
  EXPECT_EQ(signal_text(SIGSEGV, {}, arch::Isa::kAmd64, {}, {}).words, "Segmentation fault");
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(0), "no signal");
  EXPECT_EQ(signal_name(99), "signal 99");
}

}  // namespace
}  // namespace backtrail::decoder
