// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/return_stack.hpp"

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using namespace literals;

TEST(ReturnStack, PredictsTheNewestCall) {
  ReturnStack stack;
  stack.push(1_ta);
  stack.push(2_ta);
  EXPECT_FALSE(stack.pop_if(1_ta));
  EXPECT_TRUE(stack.pop_if(2_ta));
  EXPECT_TRUE(stack.pop_if(1_ta));
  EXPECT_FALSE(stack.pop_if(1_ta));
}

TEST(ReturnStack, KeepsSixtyFourCalls) {
  ReturnStack stack;
  for (std::uint64_t i = 0; i < 100; ++i) stack.push(TraceeAddr{i});
  for (std::uint64_t i = 100; i-- != 36;) EXPECT_TRUE(stack.pop_if(TraceeAddr{i}));
  EXPECT_FALSE(stack.pop_if(35_ta));
}

TEST(ReturnStack, ForgetsAll) {
  ReturnStack stack;
  stack.push(1_ta);
  stack.clear();
  EXPECT_FALSE(stack.pop_if(1_ta));
}

}  // namespace
}  // namespace backtrail::decoder
