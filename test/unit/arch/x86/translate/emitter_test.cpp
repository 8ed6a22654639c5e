// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/emitter.hpp"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace backtrail::arch::x86::translate {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes code_of(const std::function<void(Emitter&)>& emits) {
  Emitter emit{TraceeAddr{0x1000}};
  emits(emit);
  return emit.take();
}

TEST(Emitter, EncodesSlotsWithoutABase) {
  EXPECT_EQ(code_of([](Emitter& emit) { emit.store(Slot::kR10, Gpr::kR10); }),
            (Bytes{0x65, 0x4c, 0x89, 0x14, 0x25, 8, 0, 0, 0}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.load(Gpr::kRcx, Slot::kRcx); }),
            (Bytes{0x65, 0x48, 0x8b, 0x0c, 0x25, 24, 0, 0, 0}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.load8(Gpr::kRcx, Memory::of(Slot::kArgument, 7)); }),
            (Bytes{0x65, 0x0f, 0xb6, 0x0c, 0x25, 87, 0, 0, 0}));
  EXPECT_EQ(
      code_of([](Emitter& emit) { emit.store(Memory::of(Slot::kFrame, Gpr::kR10), Gpr::kR11); }),
      (Bytes{0x65, 0x4d, 0x89, 0x9a, 0, 4, 0, 0}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.jump(Memory::of(Slot::kAnswer)); }),
            (Bytes{0x65, 0xff, 0x24, 0x25, 112, 0, 0, 0}));
}

TEST(Emitter, EncodesBasesAndIndices) {
  EXPECT_EQ(code_of([](Emitter& emit) { emit.load(Gpr::kRcx, Memory::at(Gpr::kRsi)); }),
            (Bytes{0x48, 0x8b, 0x0e}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.lea(Gpr::kRcx, Memory::at(Gpr::kRcx, -1)); }),
            (Bytes{0x48, 0x8d, 0x49, 0xff}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.lea32(Gpr::kRcx, Memory::far(Gpr::kRdi, -5)); }),
            (Bytes{0x8d, 0x8f, 0xfb, 0xff, 0xff, 0xff}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.lea(Gpr::kRsp, Memory::far(Gpr::kRsp, 8)); }),
            (Bytes{0x48, 0x8d, 0xa4, 0x24, 8, 0, 0, 0}))
      << "rsp as a base takes a SIB byte";
  EXPECT_EQ(code_of([](Emitter& emit) { emit.load(Gpr::kR11, Memory::sum(Gpr::kRsp, Gpr::kR10)); }),
            (Bytes{0x4e, 0x8b, 0x1c, 0x14}));
  EXPECT_EQ(
      code_of([](Emitter& emit) { emit.lea(Gpr::kRcx, Memory::sum(Gpr::kRcx, Gpr::kRsi, -1)); }),
      (Bytes{0x48, 0x8d, 0x4c, 0x31, 0xff}));
  EXPECT_EQ(
      code_of([](Emitter& emit) { emit.jump(Memory::entry(TraceeAddr{0x70000000}, Gpr::kRcx)); }),
      (Bytes{0xff, 0x24, 0xcd, 0, 0, 0, 0x70}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.store_value32(Memory::at(Gpr::kR11), 0x1234); }),
            (Bytes{0x41, 0xc7, 0x03, 0x34, 0x12, 0, 0}));
}

TEST(Emitter, EncodesValuesOfTheRing) {
  EXPECT_EQ(code_of([](Emitter& emit) { emit.store(Memory::value(Gpr::kR10, 2), Gpr::kR11); }),
            (Bytes{0x65, 0x4e, 0x89, 0x1c, 0xd5, 0x10, 0x20, 0x10, 0}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.store16(Memory::of(Slot::kValues), Gpr::kR10); }),
            (Bytes{0x66, 0x65, 0x44, 0x89, 0x14, 0x25, 216, 0, 0, 0}))
      << "the operand size comes before REX";
}

TEST(Emitter, MovesParts) {
  EXPECT_EQ(code_of([](Emitter& emit) { emit.move(Gpr::kR10, Gpr::kRsp); }),
            (Bytes{0x49, 0x89, 0xe2}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.move32(Gpr::kRcx, Gpr::kRax); }), (Bytes{0x89, 0xc1}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.move8(Gpr::kRcx, Gpr::kRdi); }),
            (Bytes{0x40, 0x0f, 0xb6, 0xcf}))
      << "without the prefix this is bh";
  EXPECT_EQ(code_of([](Emitter& emit) { emit.move16(Gpr::kRcx, Gpr::kR10); }),
            (Bytes{0x41, 0x0f, 0xb7, 0xca}));
}

TEST(Emitter, MovesNumbersInTheShortestEncoding) {
  EXPECT_EQ(code_of([](Emitter& emit) { emit.move(Gpr::kRcx, 1); }), (Bytes{0xb9, 1, 0, 0, 0}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.move(Gpr::kR10, 0xffff'ffff); }),
            (Bytes{0x41, 0xba, 0xff, 0xff, 0xff, 0xff}));
  EXPECT_EQ(code_of([](Emitter& emit) { emit.move(Gpr::kR11, 0x1'0000'0000); }),
            (Bytes{0x49, 0xbb, 0, 0, 0, 0, 1, 0, 0, 0}));
}

TEST(Emitter, PushesWideNumbersFromTheEnd) {
  EXPECT_EQ(code_of([](Emitter& emit) {
              emit.push(0x1'0000'0002);
              emit.pause();
              emit.finish();
            }),
            (Bytes{0xff, 0x35, 2, 0, 0, 0, 0xf3, 0x90, 2, 0, 0, 0, 1, 0, 0, 0}));
}

}  // namespace
}  // namespace backtrail::arch::x86::translate
