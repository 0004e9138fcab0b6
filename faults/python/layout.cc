// SPDX-License-Identifier: MIT
#include "faults/python/layout.h"

#include <string.h>

namespace cuaudit::python {
namespace {

constexpr Layout k311 = {
    .first_interpreter = 40,
    .next_interpreter = 0,
    .first_thread = 16,
    .next_thread = 8,
    .thread_interpreter = 16,
    .thread_id = 152,
    .current = 56,
    .held = true,
    .held_frame = 8,
    .held_previous = 16,
    .code = 32,
    .previous = 48,
    .instruction = 56,
    .owner = 69,
    .last_of_call = 68,
    .filename = 112,
    .qualname = 128,
    .lines = 136,
    .first_line = 72,
    .instructions = 184,
    .text_length = 16,
    .text_state = 32,
    .text_kind_shift = 2,
    .ascii_characters = 48,
    .other_characters = 72,
    .bytes_size = 16,
    .bytes_content = 32,
};

constexpr Layout k312 = {
    .first_interpreter = 40,
    .next_interpreter = 0,
    .first_thread = 72,
    .next_thread = 8,
    .thread_interpreter = 16,
    .thread_id = 136,
    .current = 56,
    .held = true,
    .held_frame = 0,
    .held_previous = 8,
    .code = 0,
    .previous = 8,
    .instruction = 56,
    .owner = 70,
    .last_of_call = 0,
    .filename = 112,
    .qualname = 128,
    .lines = 136,
    .first_line = 68,
    .instructions = 192,
    .text_length = 16,
    .text_state = 32,
    .text_kind_shift = 2,
    .ascii_characters = 40,
    .other_characters = 56,
    .bytes_size = 16,
    .bytes_content = 32,
};

// The interpreter's own table, as 64-bit words from the start of _PyRuntime. Places that are the same in all versions that have it:
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kFreeThreaded = 2;
constexpr std::uint32_t kFirstInterpreter = 5;
constexpr std::uint32_t kNextInterpreter = 8;
constexpr std::uint32_t kFirstThread = 9;
constexpr std::uint32_t kWords = 60;
constexpr char kCookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};

// First word of a group; the fields of a group keep their order.
struct Groups {
  std::uint32_t minor;
  std::uint32_t thread;  // size, previous, next, interpreter, current frame, id
  std::uint32_t frame;   // size, previous, executable, instruction, locals, owner
  std::uint32_t code;    // size, filename, name, qualname, lines, first line, ..., instructions
  std::uint32_t object;  // size, type
};
constexpr Groups kGroups[] = {{13, 19, 28, 34, 44}, {14, 22, 31, 39, 50}};

bool OfItself(const Groups& at, std::uint32_t version, std::uintptr_t runtime, SafeMemory* memory, Layout* layout) noexcept {
  std::uint64_t word[kWords];
  if (!memory->Read(runtime, static_cast<void*>(word), sizeof(word))) return false;
  if (memcmp(word, kCookie, sizeof(kCookie)) != 0 || word[kVersion] != version || word[kFreeThreaded] != 0) return false;
  // An object begins with its count of references and its type in builds that keep the headers as they are.
  if (word[at.object] != 16 || word[at.object + 1] != 8) return false;
  bool small = true;
  const auto offset = [&](std::uint32_t index, std::uint64_t limit) {
    small = small && word[index] < limit;
    return static_cast<std::uint32_t>(word[index]);
  };
  constexpr std::uint64_t kLarge = 1 << 20;
  constexpr std::uint64_t kInFrame = kFrameBytes - 8;
  *layout = k312;
  layout->first_interpreter = offset(kFirstInterpreter, kLarge);
  layout->next_interpreter = offset(kNextInterpreter, kLarge);
  layout->first_thread = offset(kFirstThread, kLarge);
  layout->next_thread = offset(at.thread + 2, kLarge);
  layout->thread_interpreter = offset(at.thread + 3, kLarge);
  layout->current = offset(at.thread + 4, kLarge);
  layout->thread_id = offset(at.thread + 5, kLarge);
  layout->held = false;
  layout->previous = offset(at.frame + 1, kInFrame);
  layout->code = offset(at.frame + 2, kInFrame);
  layout->instruction = offset(at.frame + 3, kInFrame);
  layout->owner = offset(at.frame + 5, kFrameBytes);
  layout->filename = offset(at.code + 1, kLarge);
  layout->qualname = offset(at.code + 3, kLarge);
  layout->lines = offset(at.code + 4, kLarge);
  layout->first_line = offset(at.code + 5, kLarge);
  layout->instructions = offset(at.code + 9, kLarge);
  return small;
}

}  // namespace

bool ChooseLayout(std::uint32_t version, std::uintptr_t runtime, SafeMemory* memory, Layout* layout) noexcept {
  constexpr std::uint32_t kCandidate = 0xc;  // alpha and beta versions may still change what the final one keeps
  if (version >> 24 != 3 || (version >> 4 & 0xf) < kCandidate) return false;
  const std::uint32_t minor = version >> 16 & 0xff;
  if (minor == 11 || minor == 12) {
    *layout = minor == 11 ? k311 : k312;
    return true;
  }
  for (const Groups& groups : kGroups) {
    if (groups.minor == minor) return OfItself(groups, version, runtime, memory, layout);
  }
  return false;
}

}  // namespace cuaudit::python
