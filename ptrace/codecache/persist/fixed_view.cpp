// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/fixed_view.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptrace/os/file_facts.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Its default action is to be ignored.
constexpr int kSignal = SIGURG;

struct Lease {
  int file = -1;  ///< -1: this one is free.
  bool held = false;
  void* at = nullptr;  ///< The mapping; null: none yet.
  std::size_t bytes = 0;
};

/// The handler reads these, and cannot allocate memory.
std::array<Lease, FixedView::kMostLeases> leases;
std::atomic_flag leases_in_use;

/// Keeps other threads and, on this thread, the handler from the leases.
class LeasesLock {
 public:
  LeasesLock() {
    sigset_t signal{};
    sigemptyset(&signal);
    sigaddset(&signal, kSignal);
    ::pthread_sigmask(SIG_BLOCK, &signal, &before_);
    lock();
  }
  ~LeasesLock() {
    unlock();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  LeasesLock(const LeasesLock&) = delete;
  LeasesLock& operator=(const LeasesLock&) = delete;
  static void lock() {
    while (leases_in_use.test_and_set(std::memory_order_acquire)) continue;
  }
  static void unlock() { leases_in_use.clear(std::memory_order_release); }

 private:
  sigset_t before_{};
};

bool read_all(int file, void* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(file, static_cast<std::uint8_t*>(to) + done, bytes - done,
                                static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

/// Returns private memory with the file's bytes; null if there is none. Async-signal-safe.
void* copy_of(int file, std::size_t bytes) {
  void* copy = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return nullptr;
  if (read_all(file, copy, bytes) && ::mprotect(copy, bytes, PROT_READ) == 0) return copy;
  ::munmap(copy, bytes);
  return nullptr;
}

/// Copies the file in place of its mapping, and ends the lease.
void give_up(Lease& lease) {
  if (lease.at != nullptr) {
    void* copy = copy_of(lease.file, lease.bytes);
    // Threads that read meanwhile find the mapping or the copy, which are equal.
    if (copy == nullptr || ::mremap(copy, lease.bytes, lease.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                                    lease.at) == MAP_FAILED) {
      return;  // the kernel ends the lease some time later
    }
  }
  lease.held = false;
  ::fcntl(lease.file, F_SETLEASE, F_UNLCK);
}

void give_up_wanted(int /*signal*/) {
  const int before = errno;
  LeasesLock::lock();
  for (Lease& lease : leases) {
    if (lease.held && ::fcntl(lease.file, F_GETLEASE) != F_RDLCK) give_up(lease);
  }
  LeasesLock::unlock();
  errno = before;
}

/// Returns false if the signal is not free, or this thread does not get it.
bool handle_signal() {
  static const bool handled = [] {
    struct sigaction now {};
    if (::sigaction(kSignal, nullptr, &now) != 0) return false;
    if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN) return false;
    struct sigaction ours {};
    ours.sa_handler = give_up_wanted;
    ours.sa_flags = SA_RESTART;
    return ::sigaction(kSignal, &ours, nullptr) == 0;
  }();
  sigset_t blocked{};
  return handled && ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0 &&
         sigismember(&blocked, kSignal) == 0;
}

}  // namespace

FixedView::FixedView(UniqueFd file) : file_{std::move(file)} {
  constexpr int kFixed = F_SEAL_WRITE | F_SEAL_SHRINK;
  const int seals = ::fcntl(file_.get(), F_GET_SEALS);
  sealed_ = seals >= 0 && (seals & kFixed) == kFixed;
  if (!sealed_) (void)take_lease();
  if (::fstat(file_.get(), &facts_) != 0) facts_ = {};
}

FixedView::~FixedView() {
  const LeasesLock lock;
  if (lease_) leases.at(*lease_) = {};
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());  // NOLINT
  }
  // The lease ends with the descriptor.
  file_.reset();
}

bool FixedView::take_lease() {
  if (!handle_signal()) return false;
  const LeasesLock lock;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    Lease& lease = leases.at(i);
    if (lease.file >= 0) continue;
    if (::fcntl(file_.get(), F_SETSIG, kSignal) != 0 ||
        ::fcntl(file_.get(), F_SETLEASE, F_RDLCK) != 0) {
      return false;
    }
    lease = {.file = file_.get(), .held = true};
    lease_ = i;
    return true;
  }
  return false;
}

bool FixedView::map(bool read_soon) {
  const auto size = static_cast<std::size_t>(facts_.st_size);
  if (size == 0) return false;
  {
    const LeasesLock lock;
    if (sealed_ || (lease_ && leases.at(*lease_).held)) {
      const int flags = MAP_PRIVATE | (read_soon ? MAP_POPULATE : 0);
      void* mapped = ::mmap(nullptr, size, PROT_READ, flags, file_.get(), 0);
      if (mapped == MAP_FAILED) return false;
      bytes_ = {static_cast<const std::uint8_t*>(mapped), size};
      if (lease_) {
        leases.at(*lease_).at = mapped;
        leases.at(*lease_).bytes = size;
      }
      return true;
    }
  }
  void* copy = copy_of(file_.get(), size);
  if (copy == nullptr) return false;
  bytes_ = {static_cast<const std::uint8_t*>(copy), size};
  return true;
}

bool FixedView::is_as_it_was() const {
  const LeasesLock lock;
  if (sealed_ || (lease_ && leases.at(*lease_).at != nullptr)) return true;
  struct stat now {};
  return ::fstat(file_.get(), &now) == 0 && now.st_size == facts_.st_size &&
         nanoseconds_of(now.st_ctim) == nanoseconds_of(facts_.st_ctim);
}

}  // namespace backtrail::tracee::cache
