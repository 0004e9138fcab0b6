// SPDX-License-Identifier: MIT
#include "harness/process/files.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace cuaudit::harness {

sigset_t EndingSignals() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now = {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&ending, number);
  }
  return ending;
}

namespace {

Status Failed(Exit exit, const std::string& path, const char* what) {
  return {exit, path + ": cannot " + what + ": " + SystemWords(errno)};
}

}  // namespace

std::string SystemWords(int error) {
  return std::string(std::strerror(error)) + (error == EFBIG ? " (the limit on file sizes, ulimit -f)" : "");
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

void SparseFile::Unmap::operator()(void* data) const noexcept { munmap(data, size); }

// A program may have put a pipe in the place of the file, which would wait for a writer without O_NONBLOCK.
Result<SparseFile> SparseFile::Open(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const bool exhausted = !file.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
  if (!file.valid()) return Failed(exhausted ? Exit::Failure : Exit::Usage, path, "open");
  struct stat facts = {};
  if (fstat(file.get(), &facts) != 0) return Failed(Exit::Usage, path, "stat");
  if (!S_ISREG(facts.st_mode)) return Status(Exit::Usage, path + ": expected a regular file");
  SparseFile mapped;
  if (facts.st_size == 0) return mapped;
  const std::size_t size = static_cast<std::size_t>(facts.st_size);
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return Failed(Exit::Failure, path, "map");
  mapped.data_ = {data, Unmap{size}};
  char* const bytes = static_cast<char*>(data);
  off_t at = 0;
  for (;;) {
    const off_t begin = lseek(file.get(), at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;  // only a hole is left
    const off_t end = begin < 0 ? -1 : lseek(file.get(), begin, SEEK_HOLE);
    if (end < 0) return Failed(Exit::Failure, path, "read");
    for (at = begin; at < end && at < facts.st_size;) {
      const off_t room = std::min(end, facts.st_size) - at;
      const ssize_t got = pread(file.get(), bytes + at, static_cast<std::size_t>(room), at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Failed(Exit::Failure, path, "read");
      if (got == 0) break;
      at += got;
    }
    at = end;
  }
  mprotect(data, size, PROT_READ);
  return mapped;
}

namespace {

// All that is mapped, and what SIGBUS did before. The signal comes from an access to that memory, and never while the list changes.
std::vector<std::span<char>> shared;
struct sigaction before_shared;

void PutZeros(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const auto page = static_cast<std::size_t>(getpagesize());
  for (const std::span<char>& one : shared) {
    const auto begin = reinterpret_cast<std::uintptr_t>(one.data());
    if (at < begin || at - begin >= one.size()) continue;
    void* const from = one.data() + (at - begin) / page * page;
    if (mmap(from, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == from) return;
  }
  signal(SIGBUS, SIG_DFL);  // the access is repeated when this returns
}

}  // namespace

bool SharedFile::Open(const std::string& path, bool writable) {
  file_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat facts = {};
  if (!file_.valid() || fstat(file_.get(), &facts) != 0) return false;
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* const memory = mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) return false;
  bytes_ = {static_cast<char*>(memory), size};
  shared.push_back(bytes_);
  if (shared.size() != 1) return true;
  struct sigaction action = {};
  action.sa_sigaction = &PutZeros;
  action.sa_flags = SA_SIGINFO;
  return sigaction(SIGBUS, &action, &before_shared) == 0;
}

SharedFile::~SharedFile() {
  if (bytes_.empty()) return;
  munmap(bytes_.data(), bytes_.size());
  std::erase_if(shared, [this](const std::span<char>& one) { return one.data() == bytes_.data(); });
  if (shared.empty()) sigaction(SIGBUS, &before_shared, nullptr);
}

bool SharedFile::Resized() const {
  struct stat facts = {};
  return fstat(file_.get(), &facts) != 0 || facts.st_size != static_cast<off_t>(bytes_.size());
}

Result<std::string> ReadFile(const std::string& path, std::uint64_t most_mib) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat facts = {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) return Failed(Exit::Usage, path, "open");
  if (!S_ISREG(facts.st_mode)) return Status(Exit::Usage, path + ": expected a regular file");
  if (most_mib != 0 && static_cast<std::uint64_t>(facts.st_size) > most_mib << 20U) {
    return Status(Exit::Usage, path + ": expected at most " + std::to_string(most_mib) + " MiB");
  }
  std::string bytes;
  char block[1 << 16];
  for (;;) {
    const ssize_t got = read(file.get(), block, sizeof(block));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(Exit::Usage, path, "read");
    if (got == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

std::string LastLines(const std::string& path, std::size_t count) {
  constexpr off_t kEnough = 1 << 14;
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat facts = {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) return {};
  std::string text(static_cast<std::size_t>(std::min(facts.st_size, kEnough)), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), facts.st_size - static_cast<off_t>(text.size()));
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  if (text.empty()) return {};
  if (text.back() != '\n') text += '\n';
  std::size_t begin = text.size() - 1;
  for (std::size_t lines = 0; begin > 0 && (text[begin - 1] != '\n' || ++lines < count);) --begin;
  text.erase(0, begin);
  return text;
}

namespace {

// The signal that ended a write, until the process ends. No later write waits for a reader: stderr may be the same full pipe.
int ended_by = 0;

// Waits until a write of PIPE_BUF bytes does not block. The command has blocked the signals that end it, so nothing else would take them.
Status WaitForRoom(int fd, const std::string& path, std::chrono::milliseconds patience) {
  const sigset_t ending = EndingSignals();
  const FileDescriptor signals(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  pollfd watched[] = {{fd, POLLOUT, 0}, {signals.get(), POLLIN, 0}};
  int ready = 0;
  do {
    ready = poll(watched, std::size(watched), ended_by != 0 ? 0 : static_cast<int>(patience.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready < 0 || watched[0].revents != 0) return {};  // what is wrong with it, the write says
  signalfd_siginfo seen = {};
  if (read(signals.get(), &seen, sizeof(seen)) == static_cast<ssize_t>(sizeof(seen))) ended_by = static_cast<int>(seen.ssi_signo);
  if (ended_by != 0) return {static_cast<Exit>(kSignalled + ended_by), path + ": cannot write: stopped by " + strsignal(ended_by)};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience).count();
  return {Exit::Failure, path + ": cannot write: its reader has taken nothing for " + std::to_string(seconds) + " seconds"};
}

}  // namespace

Status WriteAll(int fd, std::string_view bytes, const std::string& path, std::chrono::milliseconds patience) {
  struct stat facts = {};
  const bool may_block = fstat(fd, &facts) == 0 && !S_ISREG(facts.st_mode);
  while (!bytes.empty()) {
    // O_NONBLOCK would hold for every process that has this stdout. So no more is written than there is room for.
    const Status room = may_block ? WaitForRoom(fd, path, patience) : Status();
    if (!room.ok()) return room;
    const ssize_t put = write(fd, bytes.data(), may_block ? std::min<std::size_t>(bytes.size(), PIPE_BUF) : bytes.size());
    if (put >= 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    else if (errno != EINTR && errno != EAGAIN) return Failed(Exit::Failure, path, "write");
  }
  return {};
}

bool WriteInPassing(int fd, std::string_view bytes, std::size_t parts) {
  pollfd watched = {fd, POLLOUT, 0};
  if (poll(&watched, 1, 0) != 1) return false;
  const int size = fcntl(fd, F_GETPIPE_SZ);  // -1: no pipe
  int unread = 0;
  if (size > 0 && ioctl(fd, FIONREAD, &unread) != 0) return false;
  if (size > 0 && static_cast<std::size_t>(unread) + bytes.size() > static_cast<std::size_t>(size) / parts) return false;
  return write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

namespace {

// Named pipes that OpenPipe has opened and nothing was written to, by path.
std::map<std::string, FileDescriptor> waiting_pipes;

// Opens what is there and is no regular file, with O_NONBLOCK. Of a named pipe without a reader it waits for one as long as a reader that
// was started beside the tool may need. Opening it would otherwise never end, and no signal would end that.
FileDescriptor OpenToWrite(const std::string& path) {
  constexpr int kTries = 100;
  constexpr timespec kPause = {0, 10'000'000};
  for (int tried = 0;; ++tried) {
    FileDescriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC));
    if (file.valid() || errno != ENXIO || tried == kTries) return file;
    nanosleep(&kPause, nullptr);
  }
}

Status NotOpened(Exit exit, const std::string& path, mode_t what) {
  if (errno == ENXIO && S_ISFIFO(what)) return {exit, path + ": cannot write: nobody reads from this pipe"};
  return Failed(exit, path, "write");
}

}  // namespace

Status OpenPipe(const std::string& path) {
  struct stat facts = {};
  if (waiting_pipes.contains(path) || stat(path.c_str(), &facts) != 0 || !S_ISFIFO(facts.st_mode)) return {};
  FileDescriptor pipe = OpenToWrite(path);
  if (!pipe.valid()) return NotOpened(Exit::Usage, path, facts.st_mode);
  waiting_pipes.emplace(path, std::move(pipe));
  return {};
}

Status WriteFile(const std::string& path, std::string_view bytes, Exit on_failure, mode_t mode, std::chrono::milliseconds patience) {
  struct stat facts = {};
  const bool exists = stat(path.c_str(), &facts) == 0;
  if (exists && S_ISDIR(facts.st_mode)) return {on_failure, path + ": cannot write: it is a directory"};
  if (exists && S_ISSOCK(facts.st_mode)) return {on_failure, path + ": cannot write: it is a socket"};
  // For a device, a pipe or a kernel name of an open file (/dev/stderr), a rename would replace the name instead of writing to it.
  struct stat name = {};
  const bool link = lstat(path.c_str(), &name) == 0 && S_ISLNK(name.st_mode);
  const bool kernels = link && (path.starts_with("/dev/") || path.starts_with("/proc/"));
  if ((exists && !S_ISREG(facts.st_mode)) || kernels) {
    auto waiting = waiting_pipes.extract(path);
    const FileDescriptor open_file = waiting.empty() ? OpenToWrite(path) : std::move(waiting.mapped());
    if (!open_file.valid()) return NotOpened(on_failure, path, facts.st_mode);
    // Who gave the tool an open file (/dev/stdout, /dev/fd/3) sees that it waits, as with stdout. Of a named pipe nobody may know.
    return WriteAll(open_file.get(), bytes, path, kernels || !S_ISFIFO(facts.st_mode) ? kForEver : patience);
  }
  // The target of a symbolic link is replaced; the link stays.
  std::string target = path;
  if (char* const real = exists ? realpath(path.c_str(), nullptr) : nullptr) {
    target = real;
    std::free(real);
  }
  std::string temporary = target + ".XXXXXX";
  const FileDescriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) return Failed(on_failure, path, "write");
  const mode_t mask = umask(0);
  umask(mask);
  Status status = WriteAll(file.get(), bytes, path);
  if (status.ok() && fchmod(file.get(), exists ? facts.st_mode & 0777 : mode & ~mask) != 0) status = Failed(on_failure, path, "write");
  if (status.ok() && rename(temporary.c_str(), target.c_str()) != 0) status = Failed(on_failure, path, "write");
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace cuaudit::harness
