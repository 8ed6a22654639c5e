// SPDX-License-Identifier: Apache-2.0
#include "server/cli/decode.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch/base/bytes.hpp"
#include "arch/base/file_bytes.hpp"
#include "server/cli/command_line.hpp"

namespace backtrail::server {
namespace {

using arch::x86::BtsQualifier;
using arch::x86::DsFormat;
using testing::HasSubstr;

std::vector<std::uint8_t> small_store() {
  std::vector<std::uint8_t> image(72 + 3 * 24);
  store_le(image.data(), std::uint64_t{0x1048});
  store_le(image.data() + 8, std::uint64_t{0x1048 + 48});
  store_le(image.data() + 16, std::uint64_t{0x1048 + 72});
  store_le(image.data() + 24, std::uint64_t{0x1048 + 48});
  auto buffer = std::span{image}.subspan(72);
  arch::x86::write_bts_entry({BtsQualifier::kBranch, 0x400010, 0x400020, {}, 0}, DsFormat::kCore2,
                             buffer);
  arch::x86::write_bts_entry({BtsQualifier::kTaskDeparts, 0, 0, {}, 5}, DsFormat::kCore2,
                             buffer.subspan(24));
  arch::x86::write_bts_entry({BtsQualifier::kBranch, 0x400030, 0x400040, {}, 0}, DsFormat::kCore2,
                             buffer.subspan(48));
  return image;
}

TEST(Decode, PrintsADebugStoreOldestFirst) {
  DecodeOptions options{.file = {}, .ds_format = DsFormat::kCore2, .base = {}, .all = false};
  const auto text = decode_text(small_store(), options);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text,
              HasSubstr("2 records, oldest first\nbranch  0x400010 -> 0x400020\ndeparts at 5\n"));
  options.all = true;
  const auto all = decode_text(small_store(), options);
  ASSERT_TRUE(all);
  EXPECT_THAT(*all, HasSubstr("3 records, oldest first, including those after the next record\n"
                              "branch  0x400030 -> 0x400040\nbranch  0x400010"));
}

TEST(Decode, PrintsThePacketsOfARecording) {
  const auto bytes = file_bytes(BT_DATA_DIR "/perf.data.intel_pt-4.14");
  ASSERT_TRUE(bytes);
  const auto text = decode_text(*bytes, {});
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("perf.data: Intel PT"));
  EXPECT_THAT(*text, HasSubstr("cpu: GenuineIntel,6,78,3"));
  EXPECT_THAT(*text, HasSubstr("cpu 3, tid"));
  EXPECT_THAT(*text, HasSubstr("137728 bytes"));
  EXPECT_THAT(*text, HasSubstr("  tnt.8 "));
}

TEST(Decode, ADebugStoreThatWasCutShortIsNotRead) {
  const DecodeOptions options{.file = {}, .ds_format = DsFormat::kCore2, .base = {}, .all = true};
  const auto image = small_store();
  for (std::size_t size = 0; size < image.size(); ++size) {
    const auto text = decode_text(std::span{image}.first(size), options);
    ASSERT_FALSE(text) << size;
    if (size >= 72) {
      EXPECT_THAT(text.error().message(), HasSubstr("cut short"));
    }
  }
}

TEST(Decode, OtherFilesAreRefused) {
  EXPECT_FALSE(decode_text(std::vector<std::uint8_t>(300, 0x41), {}));
}

Command parse(std::vector<std::string> words) {
  return parse_backtrail_arguments(words);
}

TEST(Decode, TakesItsArguments) {
  const auto plain = parse({"decode", "perf.data"});
  ASSERT_TRUE(std::holds_alternative<DecodeOptions>(plain));
  EXPECT_EQ(std::get<DecodeOptions>(plain).file, "perf.data");
  EXPECT_FALSE(std::get<DecodeOptions>(plain).ds_format);
  const auto store =
      parse({"decode", "--ds-format", "pentium-m", "--base", "0xfe00", "--all", "F"});
  ASSERT_TRUE(std::holds_alternative<DecodeOptions>(store));
  EXPECT_EQ(std::get<DecodeOptions>(store).ds_format, DsFormat::kPentiumM);
  EXPECT_EQ(std::get<DecodeOptions>(store).base, 0xfe00U);
  EXPECT_TRUE(std::get<DecodeOptions>(store).all);
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"decode"},
        {"decode", "--all", "F"},
        {"decode", "--ds-format", "k6", "F"},
        {"decode", "--ds-format", "core2", "--base", "x", "F"}})
    EXPECT_TRUE(std::holds_alternative<PrintAndExit>(parse(wrong)));
}

}  // namespace
}  // namespace backtrail::server
