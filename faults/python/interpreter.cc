// SPDX-License-Identifier: MIT
#include "faults/python/interpreter.h"

#include <link.h>
#include <pthread.h>
#include <string.h>

#include "faults/python/layout.h"
#include "faults/python/safe_memory.h"

namespace cuaudit::python {
namespace {

constexpr std::uintptr_t kType = 8;  // in every object
constexpr std::size_t kMostInterpreters = 64;
constexpr std::size_t kMostThreads = 4096;
constexpr std::size_t kMostFrames = 4096;
constexpr std::uint8_t kFirstNoFunction = 3;  // owners of frames from here on run no function: the interpreter's way in from C
constexpr std::uint32_t kNoVersion = 1;

std::uintptr_t Self() noexcept {
  const pthread_t self = pthread_self();
  static_assert(sizeof(self) == sizeof(std::uintptr_t));
  std::uintptr_t number = 0;
  memcpy(&number, &self, sizeof(number));
  return number;
}

std::uintptr_t Word(const char* bytes, std::uint32_t at) noexcept {
  std::uintptr_t word = 0;
  memcpy(&word, bytes + at, sizeof(word));
  return word;
}

}  // namespace

void Interpreter::See(const dl_phdr_info& object) noexcept {
  if (state_.load(std::memory_order_relaxed) != State::None) return;
  const LoadedSymbols symbols(object);
  if (symbols.Find("Py_GetVersion") == 0) return;
  SafeMemory memory;
  std::uint32_t version = 0;
  const std::uintptr_t at = symbols.Find("Py_Version");
  runtime_ = symbols.Find("_PyRuntime");
  code_type_ = symbols.Find("PyCode_Type");
  text_type_ = symbols.Find("PyUnicode_Type");
  bytes_type_ = symbols.Find("PyBytes_Type");
  if (at != 0 && !memory.Read(at, &version)) version = 0;
  version_ = version == 0 ? kNoVersion : version;
  const bool found = at != 0 && runtime_ != 0 && code_type_ != 0 && text_type_ != 0 && bytes_type_ != 0;
  if (found && ChooseLayout(version, runtime_, &memory, &layout_)) {
    state_.store(State::Readable, std::memory_order_release);
    return;
  }
  NoteUnread();
  state_.store(State::Unread, std::memory_order_release);
}

std::uintptr_t Interpreter::CurrentFrame(SafeMemory* memory, std::uintptr_t state, std::uintptr_t* holder) const noexcept {
  std::uintptr_t current = 0;
  if (!memory->Read(state + layout_.current, &current) || current == 0) return 0;
  *holder = current;
  if (layout_.held && !memory->Read(*holder + layout_.held_frame, &current)) return 0;
  return current;
}

bool Interpreter::Runs(SafeMemory* memory, std::uintptr_t state, std::uintptr_t self) const noexcept {
  std::uintptr_t id = 0;
  std::uintptr_t holder = 0;
  return memory->Read(state + layout_.thread_id, &id) && id == self && CurrentFrame(memory, state, &holder) != 0;
}

// A thread can have a state in several interpreters. Only the one that it is in has frames.
std::uintptr_t Interpreter::FindThread(SafeMemory* memory, std::uintptr_t self) const noexcept {
  std::uintptr_t interpreter = 0;
  if (!memory->Read(runtime_ + layout_.first_interpreter, &interpreter)) return 0;
  for (std::size_t i = 0; i < kMostInterpreters && interpreter != 0; ++i) {
    std::uintptr_t state = 0;
    if (!memory->Read(interpreter + layout_.first_thread, &state)) return 0;
    for (std::size_t j = 0; j < kMostThreads && state != 0; ++j) {
      std::uintptr_t of = 0;
      if (!memory->Read(state + layout_.thread_interpreter, &of) || of != interpreter) break;
      if (Runs(memory, state, self)) return state;
      if (!memory->Read(state + layout_.next_thread, &state)) break;
    }
    if (!memory->Read(interpreter + layout_.next_interpreter, &interpreter)) return 0;
  }
  return 0;
}

std::uintptr_t Interpreter::ThisThread(SafeMemory* memory) noexcept {
  const std::uintptr_t self = Self();
  constexpr std::uintptr_t kSpread = 0x9e3779b97f4a7c15U;
  Known& known = known_[(self * kSpread) >> 58];
  static_assert(kKnown == 64);
  if (known.thread.load(std::memory_order_relaxed) == self) {
    const std::uintptr_t state = known.state.load(std::memory_order_relaxed);
    if (state != 0 && Runs(memory, state, self)) return state;
  }
  const std::uintptr_t state = FindThread(memory, self);
  if (state != 0) {  // two threads may write at once; whoever reads, checks
    known.state.store(state, std::memory_order_relaxed);
    known.thread.store(self, std::memory_order_relaxed);
  }
  return state;
}

void Interpreter::Walk(SafeMemory* memory, std::uintptr_t thread, Frames* frames) const noexcept {
  frames->count = 0;
  std::size_t told = 0;  // frames whose native frame is known
  std::uintptr_t holder = 0;
  std::uintptr_t at = CurrentFrame(memory, thread, &holder);
  const auto tell = [&](std::uintptr_t native) {
    for (; told < frames->count; ++told) frames->frame[told].native = native;
  };
  for (std::size_t i = 0; i < kMostFrames && at != 0; ++i) {
    char bytes[kFrameBytes];
    if (!memory->Read(at, bytes, sizeof(bytes))) return;
    const bool function = static_cast<std::uint8_t>(bytes[layout_.owner]) < kFirstNoFunction;
    if (function && frames->count < kMaxPythonFrames) {
      constexpr std::uintptr_t kTag = 7;  // the low bits of a reference say who counts it
      frames->frame[frames->count++] = {Word(bytes, layout_.code) & ~kTag, Word(bytes, layout_.instruction), 0};
    }
    if (layout_.last_of_call != 0) {
      if (bytes[layout_.last_of_call] != 0) {
        tell(holder);
        if (!memory->Read(holder + layout_.held_previous, &holder)) return;
      }
    } else if (!function) {
      tell(at);
    }
    if (told == kMaxPythonFrames) return;
    at = Word(bytes, layout_.previous);
  }
}

bool Interpreter::Identify(SafeMemory* memory, const Frame& frame, Identity* identity) const noexcept {
  identity->code = frame.code;
  identity->instruction = frame.instruction;
  std::uintptr_t type = 0;
  return memory->Read(frame.code + kType, &type) && type == code_type_ &&
         memory->Read(frame.code + layout_.filename, &identity->filename) &&
         memory->Read(frame.code + layout_.qualname, &identity->qualname) && memory->Read(frame.code + layout_.lines, &identity->lines) &&
         memory->Read(frame.code + layout_.first_line, &identity->first_line);
}

Described Interpreter::Describe(SafeMemory* memory, const Identity& identity, Function* function, int* line) const noexcept {
  std::uintptr_t type = 0;
  std::uint64_t bytes = 0;
  if (!memory->Read(identity.lines + kType, &type) || type != bytes_type_ || !memory->Read(identity.lines + layout_.bytes_size, &bytes))
    return Described::Unread;
  if (bytes == 0) return Described::Machinery;
  if (!CopyText(memory, layout_, text_type_, identity.qualname, function->name, sizeof(function->name)) ||
      !CopyText(memory, layout_, text_type_, identity.filename, function->file, sizeof(function->file)))
    return Described::Unread;
  function->first_line = identity.first_line;
  const std::uintptr_t start = identity.code + layout_.instructions;
  // Before its first instruction a frame points in front of the code.
  const std::size_t offset = identity.instruction < start ? 0 : identity.instruction - start;
  *line = LineAt(memory, identity.lines + layout_.bytes_content, bytes, identity.first_line, offset);
  if (*line == 0) *line = identity.first_line;
  return Described::Known;
}

namespace {

constexpr unsigned kOneLine = 10;  // 10, 11 and 12: the line is 0, 1 or 2 further down
constexpr unsigned kNoColumns = 13;
constexpr unsigned kLong = 14;
constexpr unsigned kNone = 15;
constexpr std::int64_t kLastLine = 0x7fffffff;

// Reads a table byte by byte; past the end, or where memory cannot be read, it gives zeros and is no longer good().
class Bytes {
 public:
  Bytes(SafeMemory* memory, std::uintptr_t from, std::size_t count) noexcept : memory_(memory), at_(from), left_(count) {}
  bool good() const noexcept { return good_; }
  bool empty() const noexcept { return next_ == held_ && left_ == 0; }

  unsigned Next() noexcept {
    if (next_ == held_ && !Fill()) return 0;
    return buffer_[next_++];
  }

  // Six bits in each byte, least significant first; the seventh says that another byte follows.
  unsigned Number() noexcept {
    unsigned value = 0;
    for (unsigned shift = 0; shift < 32; shift += 6) {
      const unsigned byte = Next();
      value |= (byte & 0x3f) << shift;
      if ((byte & 0x40) == 0) return value;
    }
    good_ = false;
    return 0;
  }

  int SignedNumber() noexcept {
    const unsigned value = Number();
    const int size = static_cast<int>(value >> 1);
    return (value & 1) != 0 ? -size : size;
  }

 private:
  bool Fill() noexcept {
    held_ = left_ < sizeof(buffer_) ? left_ : sizeof(buffer_);
    next_ = 0;
    if (held_ == 0 || !memory_->Read(at_, buffer_, held_)) {
      held_ = 0;
      left_ = 0;
      good_ = false;
      return false;
    }
    at_ += held_;
    left_ -= held_;
    return true;
  }

  SafeMemory* memory_;
  std::uintptr_t at_;
  std::size_t left_;
  std::size_t held_ = 0;
  std::size_t next_ = 0;
  bool good_ = true;
  unsigned char buffer_[128];
};

}  // namespace

int LineAt(SafeMemory* memory, std::uintptr_t table, std::size_t bytes, int first_line, std::size_t offset) noexcept {
  Bytes entries(memory, table, bytes);
  std::int64_t line = first_line;
  std::int64_t found = 0;
  std::size_t end = 0;
  while (end <= offset && !entries.empty()) {
    const unsigned first = entries.Next();
    if ((first & 0x80) == 0) return 0;  // no entry begins here
    const unsigned kind = (first >> 3) & 0xf;
    end += ((first & 7) + 1) * 2;
    if (kind == kNone) continue;
    if (kind == kLong) {
      line += entries.SignedNumber();
      for (int i = 0; i < 3; ++i) (void)entries.Number();  // lines to the end, columns
    } else if (kind == kNoColumns) {
      line += entries.SignedNumber();
    } else {
      if (kind >= kOneLine) {
        line += kind - kOneLine;
        (void)entries.Next();
      }
      (void)entries.Next();
    }
    if (!entries.good()) return 0;
    found = line;
  }
  return found > 0 && found <= kLastLine ? static_cast<int>(found) : 0;
}

}  // namespace cuaudit::python
