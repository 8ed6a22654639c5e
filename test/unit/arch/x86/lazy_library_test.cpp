// SPDX-License-Identifier: Apache-2.0
#include "arch/base/lazy_library.hpp"

#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace backtrail {
namespace {

std::string complaint(const char* library, const char* name) {
  try {
    (void)lazy_function(library, name);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "found";
}

TEST(LazyLibrary, OneThatIsNotThereIsToBeInstalled) {
  EXPECT_THAT(complaint("libNot-there.so.1.0", "anything"),
              testing::AllOf(testing::HasSubstr("libNot-there.so.1.0: cannot open"),
                             testing::HasSubstr("install the package"),
                             testing::HasSubstr("(Debian: libnot-there1.0)")));
  EXPECT_THAT(complaint("libnot3.so.1", "anything"), testing::HasSubstr("(Debian: libnot3-1)"));
}

TEST(LazyLibrary, OneThatNoDescriptorIsLeftForNeedsNoInstallation) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string text = complaint("libanl.so.1", "anything");  // of the C library's package
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(text, testing::HasSubstr("raise the limit: ulimit -n"));
}

TEST(LazyLibrary, OneThatIsTooOldIsNamed) {
  EXPECT_EQ(complaint("libc.so.6", "printf"), "found");
  EXPECT_EQ(complaint("libc.so.6", "no_such_function"), "libc.so.6 lacks no_such_function");
}

}  // namespace
}  // namespace backtrail
