// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/interpose/host_census.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>

#include "faults/journal/record.h"

namespace cuaudit::faults {
namespace {

constexpr int kMostDescriptors = 1 << 16;  // higher descriptors are not followed

class DescriptorSet {
 public:
  // Returns true when the set has changed.
  bool Add(int descriptor) noexcept {
    for (int some = Groups(); some <= descriptor / 64 && !some_.compare_exchange_weak(some, descriptor / 64 + 1);) {
    }
    return (word_[descriptor / 64].fetch_or(Bit(descriptor), std::memory_order_relaxed) & Bit(descriptor)) == 0;
  }
  bool Remove(int descriptor) noexcept {
    return (word_[descriptor / 64].fetch_and(~Bit(descriptor), std::memory_order_relaxed) & Bit(descriptor)) != 0;
  }
  bool Has(int descriptor) const noexcept { return (word_[descriptor / 64].load(std::memory_order_relaxed) & Bit(descriptor)) != 0; }
  uint64_t Group(int index) const noexcept { return word_[index].load(std::memory_order_relaxed); }
  // Stores only what changes: in a fork, writing to a page copies it.
  void SetGroup(int index, uint64_t bits) noexcept {
    if (Group(index) != bits) word_[index].store(bits, std::memory_order_relaxed);
  }
  void Clear() noexcept {
    for (int index = 0; index < Groups(); ++index) SetGroup(index, 0);
  }
  static int Groups() noexcept { return some_.load(std::memory_order_relaxed); }

 private:
  static uint64_t Bit(int descriptor) noexcept { return uint64_t{1} << (descriptor % 64); }
  static inline constinit std::atomic<int> some_{0};  // groups from this one on are empty in every set
  std::atomic<uint64_t> word_[kMostDescriptors / 64] = {};
};

constinit DescriptorSet known;
constinit std::atomic<int64_t> known_count{0};
constinit std::atomic<int64_t> beyond{0};  // number of descriptors in the last listing that are not followed
constinit DescriptorSet opened;            // numbers that a wrapped function once opened
constinit std::atomic<int> last_declined{-2};
constinit DescriptorSet inherited;  // inherited numbers, whatever file they refer to now
constinit DescriptorSet taken;      // numbers that the driver took over, until they are opened again or closed

// A descriptor that a span closed and that was open when the audit began. They belong to the span's thread.
struct ClosedInherited {
  int descriptor;
  int copy;
  int flags;  // FD_CLOEXEC
  Record* record;
};
constexpr int kMostReopened = 32;  // more in one span are closed like any other
constexpr int kLowestCopy = 200;   // above the numbers that a program is likely to get
constinit ClosedInherited closed_inherited[kMostReopened] = {};
constinit int closed_inherited_count = 0;

// State of one census, guarded by `counting`.
constinit std::atomic_flag counting = ATOMIC_FLAG_INIT;
constinit DescriptorSet seen;
constinit DescriptorSet differs;
constinit DescriptorSet disputed;  // differences that the previous census could not settle

struct Calls {
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> ended{0};
};
constinit Calls quick;
constinit Calls waiting;

// Tells whether a wrapped call was in progress at any moment since this object was made.
class Interval {
 public:
  explicit Interval(const Calls& calls) noexcept
      : calls_(calls), begun_(calls.begun.load(std::memory_order_seq_cst)), free_(calls.ended.load(std::memory_order_seq_cst) == begun_) {}
  bool IsFree() const noexcept { return free_ && calls_.begun.load(std::memory_order_seq_cst) == begun_; }

 private:
  const Calls& calls_;
  uint64_t begun_;
  bool free_;
};

bool Follows(int descriptor) noexcept { return descriptor >= 0 && descriptor < kMostDescriptors && Watching() && !InBorrowedMemory(); }

uint64_t Name(int descriptor) noexcept { return static_cast<uint64_t>(descriptor) + 1; }

bool Know(int descriptor) noexcept {
  const bool is_new = known.Add(descriptor);
  if (is_new) known_count.fetch_add(1, std::memory_order_relaxed);
  return is_new;
}

bool Unknow(int descriptor) noexcept {
  const bool was_known = known.Remove(descriptor);
  if (was_known) known_count.fetch_sub(1, std::memory_order_relaxed);
  return was_known;
}

// False when the directory cannot be read.
bool Look() noexcept {
  seen.Clear();
  const int directory = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory < 0) return false;
  int64_t above = 0;
  alignas(dirent64) char buffer[2048];
  for (;;) {
    const long got = syscall(SYS_getdents64, directory, buffer, sizeof(buffer));
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      if (entry->d_name[0] == '.') continue;
      int descriptor = 0;
      for (const char* digit = entry->d_name; *digit >= '0' && *digit <= '9' && descriptor < kMostDescriptors; ++digit) {
        descriptor = descriptor * 10 + (*digit - '0');
      }
      if (descriptor >= kMostDescriptors) {
        ++above;
      } else if (descriptor != directory) {
        seen.Add(descriptor);
      }
    }
  }
  syscall(SYS_close, directory);
  if (directory >= kMostDescriptors) --above;
  beyond.store(above, std::memory_order_relaxed);
  return true;
}

// True when the number of open descriptors is the number of known ones. Then nothing was opened or closed unseen, or equally many were,
// which the listing at the end of the process shows.
bool NumberAgrees() noexcept {
  const Quiet quiet;
  struct stat info = {};
  if (stat("/proc/thread-self/fd", &info) != 0 || info.st_size <= 0) return false;
  return info.st_size == known_count.load(std::memory_order_relaxed) + beyond.load(std::memory_order_relaxed);
}

// Puts the difference of the two sides into `differs`; with `again` keeps only what was in it already. True when there is a difference.
bool Compare(bool again) noexcept {
  uint64_t any = 0;
  for (int group = 0; group < DescriptorSet::Groups(); ++group) {
    const uint64_t now = known.Group(group) ^ seen.Group(group);
    const uint64_t bits = again ? now & differs.Group(group) : now;
    differs.SetGroup(group, bits);
    any |= bits;
  }
  return any != 0;
}

// Leaves in `differs` what was opened or closed unseen. False when some of it may belong to calls in progress.
bool ListUntilCertain() noexcept {
  constexpr int kAttempts = 16;
  constexpr int kListingsBesideWaiting = 3;
  const Quiet quiet;
  int beside_waiting = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt != 0) sched_yield();
    const Interval quick_calls(quick);
    const Interval waiting_calls(waiting);
    if (!quick_calls.IsFree() && attempt + 1 < kAttempts) continue;
    if (!Look()) {
      differs.Clear();
      return true;
    }
    // A waiting call may have its descriptor already and not have recorded it. A descriptor that stays unknown for a while came another
    // way.
    const bool waits = !waiting_calls.IsFree();
    const bool any = Compare(waits && beside_waiting != 0);
    if (!quick_calls.IsFree()) {
      beside_waiting = 0;
      continue;
    }
    if (!any || !waits || ++beside_waiting == kListingsBesideWaiting) return true;
  }
  return false;
}

// Files that the C library and the driver open past the wrappers and keep: the user and host databases (getpwent, gethostent, ...), the
// sockets of syslog and of the name service daemons, and devices.
// clang-format off
constexpr const char* kLibraryFiles[] = {
    "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/hosts", "/etc/networks", "/etc/protocols",
    "/etc/services", "/etc/rpc", "/etc/ethers", "/etc/netgroup", "/etc/aliases", "/var/db/", "/run/utmp",
    "/var/run/utmp", "/var/log/wtmp", "/run/nscd/", "/var/run/nscd/", "/var/cache/nscd/", "/var/lib/sss/", "/dev/log",
    "/run/systemd/journal/dev-log", "/run/systemd/userdb/", "/dev/nvidia", "/dev/dxg",
};
// clang-format on

bool IsLibraryFile(const char* path) noexcept {
  for (const char* const one : kLibraryFiles) {
    if (strncmp(path, one, strlen(one)) == 0) return true;
  }
  return false;
}

// Record flags that say who opened the descriptor, as far as its file shows that.
uint16_t FlagsOf(int descriptor) noexcept {
  const Quiet quiet;
  char link[32];
  char path[sizeof(sockaddr_un::sun_path) + 1];
  snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  path[length > 0 ? length : 0] = '\0';
  if (path[0] == '/') return IsLibraryFile(path) ? uint16_t{kKeptByLibrary} : uint16_t{0};
  if (strcmp(path, "anon_inode:[eventfd]") == 0 || strncmp(path, "pipe:", 5) == 0) return kEventOrPipe;
  sockaddr_un peer = {};
  socklen_t bytes = sizeof(peer) - 1;
  const bool connected = syscall(SYS_getpeername, descriptor, &peer, &bytes) == 0 && peer.sun_family == AF_UNIX;
  return connected && IsLibraryFile(peer.sun_path) ? uint16_t{kKeptByLibrary} : uint16_t{0};
}

// False when there is nothing to keep: the number is not open, too many are kept, or somebody would notice the copy: the reader of a pipe
// and the peer of a socket wait for the last end to be closed.
bool KeepCopy(int descriptor) noexcept {
  if (closed_inherited_count == kMostReopened) return false;
  struct stat file = {};
  if (syscall(SYS_fstat, descriptor, &file) != 0) return false;
  if (descriptor > STDERR_FILENO && !S_ISREG(file.st_mode) && !S_ISCHR(file.st_mode)) return false;
  const int flags = static_cast<int>(syscall(SYS_fcntl, descriptor, F_GETFD));
  const int copy = flags < 0 ? -1 : static_cast<int>(syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, kLowestCopy));
  if (copy < 0) return false;
  inherited.Remove(descriptor);
  Record* const record = Reserve(HostCall::DescriptorClose, Name(descriptor), kOpenAtBegin);
  closed_inherited[closed_inherited_count++] = {descriptor, copy, flags, record};
  return true;
}

// The program closes numbers at which copies are kept.
void LoseCopies(unsigned first, unsigned last) noexcept {
  for (int i = 0; i < closed_inherited_count; ++i) {
    int& copy = closed_inherited[i].copy;
    if (copy >= 0 && static_cast<unsigned>(copy) >= first && static_cast<unsigned>(copy) <= last) copy = -1;
  }
}

void Tell(int descriptor) noexcept {
  if (seen.Has(descriptor)) {
    Know(descriptor);
    Record* const record = ReserveBare(HostCall::DescriptorFound, Name(descriptor), 0);
    if (record != nullptr) record->flags |= FlagsOf(descriptor);
    Finish(record);
  } else if (Unknow(descriptor)) {
    Finish(ReserveBare(HostCall::DescriptorGone, Name(descriptor), 0));
  }
}

}  // namespace

UnderWay::UnderWay() noexcept { quick.begun.fetch_add(1, std::memory_order_seq_cst); }
UnderWay::~UnderWay() { quick.ended.fetch_add(1, std::memory_order_seq_cst); }
MayWait::MayWait() noexcept { waiting.begun.fetch_add(1, std::memory_order_seq_cst); }
MayWait::~MayWait() { waiting.ended.fetch_add(1, std::memory_order_seq_cst); }

int Opened(int descriptor, HostCall call) noexcept {
  if (!Follows(descriptor)) return descriptor;
  const UnderWay under_way;
  inherited.Remove(descriptor);
  opened.Add(descriptor);
  taken.Remove(descriptor);
  Know(descriptor);
  Write(call, Name(descriptor), 0);
  return descriptor;
}

void ToldOfDescriptor(int descriptor, bool taken_over) noexcept {
  if (!Follows(descriptor)) return;
  if (taken_over) {
    // A driver that closes it past the wrappers (an H100 does) leaves the number free for a file that nobody sees opened. One that keeps it
    // open under the same number goes on being followed.
    if (syscall(SYS_fcntl, descriptor, F_GETFD) < 0) Unknow(descriptor);
    taken.Add(descriptor);
    return;
  }
  inherited.Remove(descriptor);
  taken.Remove(descriptor);
  Know(descriptor);
}

int Replaced(int descriptor, HostCall call) noexcept {
  if (Follows(descriptor) && inherited.Has(descriptor)) {
    if (!InProcess()) Know(descriptor);
    return descriptor;
  }
  Closing(descriptor);
  return Opened(descriptor, call);
}

bool Closing(int descriptor) noexcept {
  if (!Follows(descriptor)) return false;
  if (InOwnSpan()) LoseCopies(static_cast<unsigned>(descriptor), static_cast<unsigned>(descriptor));
  if (InOwnSpan() && inherited.Has(descriptor) && KeepCopy(descriptor)) return true;
  if (descriptor > STDERR_FILENO) inherited.Remove(descriptor);  // a standard stream is closed before it is opened anew
  // A driver that took the number over may have closed it, and somebody may have opened it again by a way without a record.
  const bool was_taken = taken.Remove(descriptor) && syscall(SYS_fcntl, descriptor, F_GETFD) < 0;
  if (!Unknow(descriptor) && !was_taken) return false;
  Write(HostCall::DescriptorClose, Name(descriptor), 0);
  return true;
}

void WasNotOpen(int descriptor) noexcept {
  if (!Follows(descriptor)) return;
  if (InProcess()) {
    if (InOwnSpan() && opened.Has(descriptor)) Write(HostCall::DescriptorClose, Name(descriptor), kClosedAgain);
    return;
  }
  const bool next = last_declined.exchange(descriptor, std::memory_order_relaxed) + 1 == descriptor;
  if (!next || opened.Has(descriptor)) Write(HostCall::DescriptorClose, Name(descriptor), kNotOpen);
}

void ReopenClosed() noexcept {
  const Quiet quiet;
  for (; closed_inherited_count != 0; --closed_inherited_count) {
    const ClosedInherited& one = closed_inherited[closed_inherited_count - 1];
    // Asks for the number and takes it at once: another thread may open a file under it at any time.
    const int command = (one.flags & FD_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD;
    const int reopened = one.copy < 0 ? -1 : static_cast<int>(syscall(SYS_fcntl, one.copy, command, one.descriptor));
    const bool replaced = reopened > one.descriptor;
    if (replaced) syscall(SYS_close, reopened);
    if (reopened == one.descriptor) inherited.Add(one.descriptor);
    if (one.copy >= 0) syscall(SYS_close, one.copy);
    // A standard stream is closed to be opened anew, for example as a log file.
    if (replaced && one.descriptor <= STDERR_FILENO) {
      Withdraw(one.record);
    } else {
      Finish(one.record);
    }
  }
}

void ClosingFrom(unsigned first, unsigned last) noexcept {
  if (InOwnSpan()) LoseCopies(first, last);
  for (unsigned descriptor = first; descriptor <= last && descriptor < kMostDescriptors; ++descriptor) {
    const int group = static_cast<int>(descriptor / 64);
    const uint64_t open = known.Group(group) | (InOwnSpan() ? inherited.Group(group) : 0);
    if (open == 0) {
      descriptor |= 63U;
    } else if ((open >> (descriptor % 64) & 1U) != 0) {
      if (InOwnSpan() && last >= static_cast<unsigned>(kLowestCopy))
        inherited.Remove(static_cast<int>(descriptor));  // the range takes the copies, too
      Closing(static_cast<int>(descriptor));
    }
  }
}

void RememberOpenDescriptors() noexcept {
  RememberReplaceable();
  for (int group = 0; group < DescriptorSet::Groups(); ++group) {
    for (uint64_t left = inherited.Group(group); left != 0; left &= left - 1) Know(group * 64 + __builtin_ctzll(left));
  }
}

void RememberReplaceable() noexcept {
  if (!Look()) return;
  for (int group = 0; group < DescriptorSet::Groups(); ++group) inherited.SetGroup(group, seen.Group(group));
}

void TakeCensus(bool at_the_end) noexcept {
  if (!at_the_end && NumberAgrees()) return;
  if (counting.test_and_set(std::memory_order_acquire)) return;  // another thread takes a census now
  const bool certain = ListUntilCertain();
  uint64_t untold = 0;
  for (int group = 0; group < DescriptorSet::Groups(); ++group) {
    const uint64_t bits = differs.Group(group);
    const uint64_t told = certain ? bits : bits & disputed.Group(group);
    disputed.SetGroup(group, bits & ~told);
    untold |= bits & ~told;
    for (uint64_t left = told; left != 0; left &= left - 1) Tell(group * 64 + __builtin_ctzll(left));
  }
  if (untold != 0) HostJournal().header().flags.fetch_or(kDescriptorsDisputed, std::memory_order_relaxed);
  counting.clear(std::memory_order_release);
}

void ForgetCallsUnderWay() noexcept {
  for (Calls* const calls : {&quick, &waiting}) {
    calls->begun.store(0, std::memory_order_relaxed);
    calls->ended.store(0, std::memory_order_relaxed);
  }
  counting.clear(std::memory_order_release);
}

}  // namespace cuaudit::faults
