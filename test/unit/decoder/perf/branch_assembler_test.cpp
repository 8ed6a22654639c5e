// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/branch_assembler.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder::perf {
namespace {

constexpr std::uint64_t kKernel = 0xffff'ffff'8100'0000;
constexpr std::uint64_t kCode = 0x40'0000;

/// nop at +0, syscall at +1, nop at +3, int $3 at +4; `mov $15,%eax; syscall` at +16.
class Code : public CodeReader {
 public:
  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    if (address.value() < kCode || address.value() >= kCode + bytes_.size()) return 0;
    const auto rest = std::span{bytes_}.subspan(address.value() - kCode);
    const std::size_t count = std::min(rest.size(), out.size());
    std::copy_n(rest.begin(), count, out.begin());
    return count;
  }

 private:
  std::vector<std::uint8_t> bytes_{0x90, 0x0f, 0x05, 0x90, 0xcd, 0x03, 0x90, 0x90,
                                   0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
                                   0xb8, 0x0f, 0,    0,    0,    0x0f, 0x05, 0x90};
};

class Sink : public TraceConsumer {
 public:
  void consume(std::span<const Record> batch) override {
    records.insert(records.end(), batch.begin(), batch.end());
  }
  void consume_mark(const TraceMark& mark) override { marks.push_back(mark.kind); }
  std::vector<Record> records;
  std::vector<MarkKind> marks;
};

struct Fixture {
  Code code;
  InsnCache insns{code};
  Sink sink;
  BranchAssembler assembler{&insns, sink};

  const std::vector<Record>& flushed() {
    assembler.flush();
    return sink.records;
  }
};

Record start_at(std::uint64_t pc) {
  return gap(GapReason::kStart, {}, TraceeAddr{pc});
}
Record jump(std::uint64_t from, std::uint64_t to) {
  return branch(TraceeAddr{from}, TraceeAddr{to});
}

TEST(BranchAssembler, CopiesWholeRecordsBatchByBatch) {
  Fixture f;
  f.assembler.start(TraceeAddr{7});
  std::vector<std::uint8_t> bytes(24 * 10'000 + 5);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    store_le(bytes.data() + i * 24, i + 1);
    store_le(bytes.data() + i * 24 + 8, i + 2);
    store_le(bytes.data() + i * 24 + 16, ~std::uint64_t{0});  // Flags without meaning.
  }
  f.assembler.raw_records(bytes);
  ASSERT_EQ(f.flushed().size(), 10'001U);
  EXPECT_EQ(f.sink.records[0], start_at(7));
  for (std::uint64_t i = 0; i < 10'000; ++i) ASSERT_EQ(f.sink.records[i + 1], jump(i + 1, i + 2));
}

TEST(BranchAssembler, TheFirstPairSaysWhereRecordingBegan) {
  Fixture f;
  f.assembler.pair(0x10, 0x20);
  EXPECT_EQ(f.flushed(), (std::vector<Record>{start_at(0x10), jump(0x10, 0x20)}));
}

TEST(BranchAssembler, AFromOfZeroIsNoBranch) {
  Fixture f;
  f.assembler.start(TraceeAddr{1});
  f.assembler.pair(0, 0x1234);
  f.assembler.pair(0, 0);
  f.assembler.pair(3, 4);
  EXPECT_EQ(f.flushed(), (std::vector<Record>{start_at(1), jump(3, 4)}));
  EXPECT_EQ(f.assembler.dropped(), 2U);
}

TEST(BranchAssembler, LossesAddUpToOneGapBeforeTheNextRecord) {
  Fixture f;
  f.assembler.start(TraceeAddr{1});
  f.assembler.pair(3, 4);
  f.assembler.lost({5, LossBound::kExact});
  f.assembler.lost({7, LossBound::kExact});
  f.assembler.pair(8, 9);
  f.assembler.lost({2, LossBound::kBatches});
  f.assembler.lost({1, LossBound::kExact});
  f.assembler.pair(10, 11);
  f.assembler.lost({});
  f.assembler.flush(TraceeAddr{99});
  EXPECT_EQ(f.sink.records,
            (std::vector<Record>{
                start_at(1), jump(3, 4), gap(GapReason::kOverflow, {}, TraceeAddr{8}, 12),
                jump(8, 9), gap(GapReason::kOverflow, {}, TraceeAddr{10}, 3, LossBound::kAtLeast),
                jump(10, 11), gap(GapReason::kOverflow, {}, TraceeAddr{99}, 0)}));
}

TEST(BranchAssembler, AnUnknownLossMakesAKnownOneALowerBound) {
  const Loss sum = Loss{4, LossBound::kExact} + Loss{};
  EXPECT_EQ(sum.count, 4U);
  EXPECT_EQ(sum.bound, LossBound::kAtLeast);
}

TEST(BranchAssembler, SystemCallsLeaveMarksAndNoRecords) {
  Fixture f;
  f.assembler.start(TraceeAddr{kCode});
  f.assembler.pair(kCode + 1, kKernel);
  f.assembler.pair(kKernel + 50, kCode + 3);
  f.assembler.pair(kCode + 3, kCode);
  EXPECT_EQ(f.flushed(), (std::vector<Record>{start_at(kCode), jump(kCode + 3, kCode)}));
  EXPECT_EQ(f.sink.marks, (std::vector{MarkKind::kLeftSystemCall, MarkKind::kCameBack}));
}

TEST(BranchAssembler, AnInterruptLeavesNothing) {
  Fixture f;
  f.assembler.start(TraceeAddr{kCode});
  f.assembler.pair(kCode + 3, kKernel);
  f.assembler.pair(kKernel + 50, kCode + 3);
  EXPECT_EQ(f.flushed(), (std::vector<Record>{start_at(kCode)}));
  EXPECT_TRUE(f.sink.marks.empty());
}

TEST(BranchAssembler, ASignalIsAnAsynchronousTransferAndItsReturnABranch) {
  Fixture f;
  f.assembler.start(TraceeAddr{kCode});
  f.assembler.pair(kCode + 3, kKernel);       // A fault.
  f.assembler.pair(kKernel + 50, 0x70'0000);  // The fault's handler.
  f.assembler.pair(kCode + 21, kKernel);      // The handler's sigreturn.
  f.assembler.pair(kKernel + 50, kCode + 3);
  f.assembler.pair(kCode + 1, kKernel);       // A system call.
  f.assembler.pair(kKernel + 50, 0x70'0000);  // A signal interrupts the system call.
  EXPECT_EQ(f.flushed(),
            (std::vector<Record>{start_at(kCode),
                                 async_transfer(TraceeAddr{kCode + 3}, TraceeAddr{0x70'0000}),
                                 jump(kCode + 21, kCode + 3),
                                 async_transfer(TraceeAddr{kCode + 3}, TraceeAddr{0x70'0000})}));
}

TEST(BranchAssembler, SoftwareInterruptsAreToldApart) {
  Fixture f;
  f.assembler.start(TraceeAddr{kCode});
  f.assembler.pair(kCode + 4, kKernel);
  f.assembler.pair(kKernel, kCode + 6);
  EXPECT_EQ(f.flushed().size(), 1U);
  EXPECT_EQ(f.sink.marks, (std::vector{MarkKind::kLeftSoftware, MarkKind::kCameBack}));
}

TEST(BranchAssembler, KernelAddressesNeverComeOut) {
  // Tries every order of the four kinds of pairs, with losses in between.
  for (unsigned order = 0; order < 4096; ++order) {
    Fixture f;
    f.assembler.start(TraceeAddr{kCode});
    for (unsigned i = 0, rest = order; i < 6; ++i, rest /= 4) {
      const std::uint64_t from = (rest & 1U) != 0 ? kKernel + i : kCode + i;
      const std::uint64_t to = (rest & 2U) != 0 ? kKernel + i : kCode + i;
      f.assembler.pair(from, to);
      if (i == order % 7) f.assembler.lost({1, LossBound::kExact});
    }
    for (const Record& record : f.flushed()) {
      ASSERT_LT(record.from.value(), kKernel);
      ASSERT_LT(record.to.value(), kKernel);
    }
  }
}

TEST(TraceMark, PseudoAddressesSayTheKindAndBelongToNoProgram) {
  EXPECT_EQ(pseudo_address(MarkKind::kLeftSystemCall).value() & 0xfffU,
            static_cast<std::uint64_t>(MarkKind::kLeftSystemCall));
  EXPECT_NE(pseudo_address(MarkKind::kLeftSystemCall), pseudo_address(MarkKind::kLeftAsync));
  EXPECT_GE(pseudo_address(MarkKind::kArrives).value(), 0xffff'8000'0000'0000U);
}

}  // namespace
}  // namespace backtrail::decoder::perf
