#include "ptrace/cache/kept_seal.hpp"

#include <array>
#include <chrono>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;

/// More than the kernel's clock for times of change ticks.
constexpr nanoseconds kSettled = std::chrono::milliseconds{50};
constexpr mode_t kOwnerFile = 0600;

nanoseconds time_of(const timespec& time) {
  return std::chrono::seconds{time.tv_sec} + nanoseconds{time.tv_nsec};
}

/// Every write changes the time of change, which nobody can set.
std::string note_of(const struct stat& facts) {
  static const std::string boot = ProcFs{}.read("sys/kernel/random/boot_id").value_or("");
  if (boot.empty()) return {};
  return fmt::format("{} {} {} {} {}", facts.st_dev, facts.st_ino, facts.st_size,
                     time_of(facts.st_ctim).count(), boot);
}

}  // namespace

fs::path seal_of(const fs::path& file) {
  fs::path note = file;
  return note.replace_extension("checked");
}

bool is_sealed(const fs::path& file, const struct stat& facts) {
  const std::string expected = note_of(facts);
  const UniqueFd fd{::open(seal_of(file).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  std::array<char, 256> there{};
  if (!fd || expected.empty()) return false;
  const ssize_t got = ::read(fd.get(), there.data(), there.size());
  return got > 0 && std::string_view{there.data(), static_cast<std::size_t>(got)} == expected;
}

void seal(const fs::path& file, const struct stat& facts) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const nanoseconds age = time_of(now) - time_of(facts.st_ctim);
  const std::string note = note_of(facts);
  if (age < kSettled || note.empty()) return;
  const fs::path target = seal_of(file);
  const fs::path made = fmt::format("{}.{}", target.string(), ::getpid());
  UniqueFd fd{
      ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerFile)};
  if (!fd) return;
  const bool whole = ::write(fd.get(), note.data(), note.size()) == std::ssize(note);
  fd.reset();
  if (!whole || ::rename(made.c_str(), target.c_str()) != 0) ::unlink(made.c_str());
}

}  // namespace backtrail::tracee::cache
