// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/interpose/forker.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/interpose/sim_host.h"
#include "faults/shim/stop_watch.h"
#include "faults/shim/thread_identity.h"

namespace cuaudit::faults {
namespace {

void Wait(std::atomic<std::uint32_t>* word, std::uint32_t seen) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

// Blocks signals, so that no signal handler of the program runs in a child that is not yet set up.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

void WriteHex(unsigned number, char* digits, std::size_t count) noexcept {
  for (; count-- > 0; number >>= 4) digits[count] = "0123456789abcdef"[number & 15U];
}

// Writes in place, because /proc and executed programs see this memory.
void SignEnvironment() noexcept {
  char* const digits = getenv(kForkVariable);
  if (digits != nullptr && strlen(digits) == kForkDigits) WriteHex(static_cast<unsigned>(getpid()), digits, kForkDigits);
}

// Writes in place, too. A program that this fork executes takes no part in the round (fork_file.h); `image` gets the path of its
// journal.
void DivertImages(std::uint32_t slot, char* image, std::size_t size) noexcept {
  constexpr char kJournal[] = "journal=";
  constexpr std::size_t kTail = kImageDigits + sizeof(kImageEnding) - 1;
  char* const text = getenv("CUAUDIT_OPTIONS");
  if (text == nullptr || strncmp(text, kJournal, sizeof(kJournal) - 1) != 0) return;
  if (char* const forks = strstr(text, ";forks=")) *forks = '\0';
  char* const path = text + sizeof(kJournal) - 1;
  const std::size_t length = strcspn(path, ";");
  if (length < kTail || length >= size || strncmp(path + length - kTail + kImageDigits, kImageEnding, sizeof(kImageEnding) - 1) != 0)
    return;
  WriteHex(slot + 1, path + length - kTail, kImageDigits);
  memcpy(image, path, length);
  image[length] = '\0';
}

}  // namespace

const char* Forker::Open(const char* path, const char* journal) noexcept {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return "cannot open the fork file";
  struct stat facts;
  void* memory = MAP_FAILED;
  const bool sized = fstat(file, &facts) == 0 && facts.st_size >= static_cast<off_t>(sizeof(ForkHeader));
  if (sized) memory = mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (!sized) return "the fork file is not one made by this cuaudit";
  if (memory == MAP_FAILED) return "cannot map the fork file";
  madvise(memory, static_cast<std::size_t>(facts.st_size), MADV_RANDOM);  // as for the journal
  if (const char* const wrong = CheckForkFile(memory, static_cast<std::size_t>(facts.st_size), sizeof(JournalHeader), sizeof(Record))) {
    munmap(memory, static_cast<std::size_t>(facts.st_size));
    return wrong;
  }
  ForkHeader* const header = static_cast<ForkHeader*>(memory);
  nodes_ = reinterpret_cast<ForkNode*>(static_cast<char*>(memory) + header->nodes_offset);
  slots_ = reinterpret_cast<ForkSlot*>(static_cast<char*>(memory) + header->slots_offset);
  header_ = header;
  check_.Start();
  check_.AddOwn(path);
  check_.AddOwn(journal);
  return nullptr;
}

void Forker::Start(Gate* gate, Journal* journal, sim::World* world, Plan* plan) noexcept {
  gate_ = gate;
  journal_ = journal;
  world_ = world;
  plan_ = plan;
  host_ = reinterpret_cast<HostContinue>(dlsym(RTLD_DEFAULT, "cuaudit_host_continue"));
  gate->Watch({&Forker::Before, this});
}

bool Forker::Attend() noexcept {
  if (!StartAttendant(world_, &journal_->header().forced_progress)) return false;
  ++attendants_;
  return true;
}

void Forker::Leave() noexcept {
  if (gate_ != nullptr) gate_->Watch({});
}

void Forker::Before(void* self, driver::BaseId base) noexcept {
  Forker& forker = *static_cast<Forker*>(self);
  forker.fit_ = false;
  const auto phase = static_cast<Phase>(forker.journal_->header().phase.load(std::memory_order_relaxed));
  const std::uint32_t before = forker.count_[0][driver::Index(base)]++;
  const std::uint32_t before_in_phase =
      phase == Phase::Any ? before : forker.count_[static_cast<std::size_t>(phase)][driver::Index(base)]++;
  const std::uint32_t here = forker.node_;
  ForkRange range = FindForks(forker.nodes_, forker.nodes_[here], base, Phase::Any, before + 1);
  for (std::uint32_t i = 0; i < range.count && forker.node_ == here; ++i) forker.ForkAt(range.first + i, before);
  if (phase == Phase::Any || forker.node_ != here) return;
  range = FindForks(forker.nodes_, forker.nodes_[here], base, phase, before_in_phase + 1);
  for (std::uint32_t i = 0; i < range.count && forker.node_ == here; ++i) forker.ForkAt(range.first + i, before_in_phase);
}

void Forker::Refuse(ForkNode* node, ForkRefusal why) noexcept {
  node->why.store(why, std::memory_order_relaxed);
  node->state.store(ForkState::Refused, std::memory_order_release);
}

std::uint32_t Forker::Claim(std::uint32_t pool) noexcept {
  std::atomic<std::uint32_t>& waiting = slot_ == kNoSlot ? header_->waiting : slots_[slot_].waiting;
  for (;;) {
    const std::uint32_t seen = header_->freed.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < header_->slots; ++i) {
      SlotState free = SlotState::Free;
      if (slots_[i].pool == pool && slots_[i].state.compare_exchange_strong(free, SlotState::Claimed, std::memory_order_acq_rel)) return i;
    }
    waiting.store(1, std::memory_order_release);
    Wait(&header_->freed, seen);
    waiting.store(0, std::memory_order_release);
  }
}

JournalHeader* Forker::SlotHeader(std::uint32_t slot) noexcept {
  return reinterpret_cast<JournalHeader*>(reinterpret_cast<char*>(header_) + header_->journals_offset + slot * header_->journal_bytes);
}

Record* Forker::SlotRecords(std::uint32_t slot) noexcept {
  return reinterpret_cast<Record*>(reinterpret_cast<char*>(SlotHeader(slot)) + header_->records_offset);
}

// Called by the parent before it goes on: the child's journal continues from the current end of this one.
void Forker::PrepareSlot(std::uint32_t slot) noexcept {
  JournalHeader* const to = SlotHeader(slot);
  const std::uint64_t reserved = to->reserved.load(std::memory_order_relaxed);
  memcpy(static_cast<void*>(to), static_cast<const void*>(&journal_->header()), sizeof(*to));
  to->record_capacity = header_->record_capacity;
  to->next_record.store(0, std::memory_order_relaxed);
  to->reserved.store(reserved, std::memory_order_relaxed);
}

ForkRefusal Forker::LookAtProcess() noexcept {
  if (world_ == nullptr) return ForkRefusal::Driver;
  const ForkRefusal why = check_.Look(attendants_, header_->tool);
  // A fork made here would lack the driver calls that the executed program made.
  return why == ForkRefusal::None && ImageCalls() ? ForkRefusal::Indirect : why;
}

void Forker::ForkAt(std::uint32_t index, std::uint32_t matched) noexcept {
  ForkNode* const node = &nodes_[index];
  if (node->state.load(std::memory_order_relaxed) != ForkState::Ahead) return;
  const int saved = errno;
  // Between the forks at one call the program stands still, and looking takes as long as forking.
  ForkRefusal why = fit_ ? ForkRefusal::None : LookAtProcess();
  fit_ = why == ForkRefusal::None;
  if (fit_) {
    const std::uint32_t slot = Claim(node->children == 0 ? 0 : node->depth);
    const SignalsBlocked blocked;
    if (!sim::HoldForFork(world_)) {
      why = ForkRefusal::Threads;
    } else if ((why = check_.KeepWiped(sim::WipedByFork(world_))) != ForkRefusal::None) {
      sim::ReleaseAfterFork(world_);
    } else {
      PrepareSlot(slot);
      node->slot.store(slot, std::memory_order_relaxed);
      node->parent_slot.store(slot_, std::memory_order_relaxed);
      node->parent_records.store(journal_->header().next_record.load(std::memory_order_relaxed), std::memory_order_relaxed);
      node->state.store(ForkState::Forked, std::memory_order_release);
      slots_[slot].node.store(index, std::memory_order_release);
      const long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
      check_.WipeAgain();
      if (child == 0) {
        BecomeChild(index, slot, matched);
        errno = saved;
        return;
      }
      sim::ReleaseAfterFork(world_);
      if (child > 0) {
        node->pid.store(static_cast<std::int32_t>(child), std::memory_order_release);
      } else {
        why = ForkRefusal::System;
      }
    }
    if (why != ForkRefusal::None) {
      slots_[slot].node.store(0, std::memory_order_relaxed);
      slots_[slot].state.store(SlotState::Free, std::memory_order_release);
    }
  }
  if (why != ForkRefusal::None) Refuse(node, why);
  errno = saved;
}

// True when a program that this fork has executed called the driver.
bool Forker::ImageCalls() const noexcept {
  if (image_[0] == '\0') return false;
  // System calls instead of open and close, of which the host drop-in would write records.
  const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, image_, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file < 0) return false;
  std::uint32_t calls[driver::kBaseCount] = {};
  const ssize_t got = pread(file, calls, sizeof(calls), offsetof(JournalHeader, occurrences));
  syscall(SYS_close, file);
  bool any = false;
  for (const std::uint32_t count : calls) any |= count != 0;
  return got == static_cast<ssize_t>(sizeof(calls)) && any;
}

void Forker::BecomeChild(std::uint32_t index, std::uint32_t slot, std::uint32_t matched) noexcept {
  ForkNode& node = nodes_[index];
  node.pid.store(getpid(), std::memory_order_release);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != header_->tool) _exit(127);
  setpgid(0, 0);
  SignEnvironment();
  DivertImages(slot, image_, sizeof(image_));
  JournalHeader* const header = SlotHeader(slot);
  const std::size_t fault = plan_->size();
  if (!node.control) {
    if (!plan_->Add(node.fault)) _exit(127);
    header->matched[fault].store(matched, std::memory_order_relaxed);
    header->fired[fault].store(0, std::memory_order_relaxed);
  }
  journal_->Continue(header, SlotRecords(slot));
  fork_pid_ = getpid();
  WatchStopsInChild();
  gate_->Rearm(*plan_, Anew::Nothing);
  GoOnAsParent();
  if (host_ != nullptr) host_(header, SlotRecords(slot), static_cast<std::uint32_t>(getpid()), Gate::ProcessName());
  node_ = index;
  slot_ = slot;
  attendants_ = 0;
  if (node.children == 0) {  // unmap before a new thread's stack can lie in the unmapped range
    gate_->Watch({});
    KeepOnly(slot);
  }
  if (sim::ContinueForked(world_, header->kernels)) Attend();
}

// Unmaps the other slots, so that a child with a memory error cannot overwrite the journals of others.
void Forker::KeepOnly(std::uint32_t slot) noexcept {
  char* const begin = reinterpret_cast<char*>(header_);
  char* const own = reinterpret_cast<char*>(SlotHeader(slot));
  char* const own_end = own + header_->journal_bytes;
  char* const end = begin + header_->file_bytes;
  // A system call instead of munmap, for which the host drop-in would write a record.
  if (own_end < end) syscall(SYS_munmap, own_end, static_cast<std::size_t>(end - own_end));
  header_ = nullptr;
  syscall(SYS_munmap, begin, static_cast<std::size_t>(own - begin));
}

}  // namespace cuaudit::faults
