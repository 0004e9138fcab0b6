// SPDX-License-Identifier: MIT
// settings.h: the calls of settings.def as tables.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "faults/driver/call_id.h"

namespace cuaudit::driver {

enum class SettingOf : std::uint8_t { Context, Thread, Device, MemoryPool, Function, Kernel, Stream, Memory, Executable };

inline constexpr std::int8_t kNo = -1;
inline constexpr BaseId kNoQuestion = static_cast<BaseId>(0xffff);

struct SettingRow {
  BaseId set;
  SettingOf of;
  std::int8_t object, key, value;
  BaseId get;
  std::int8_t object_asked, key_asked, answer;
};
inline constexpr SettingRow kSettings[] = {
#define CUAUDIT_INITIAL(set, key, value)
#define CUAUDIT_SETTING(set, of, object, key, value, get, object_asked, key_asked, answer) \
  {BaseId::set, SettingOf::of, object, key, value, BaseId::get, object_asked, key_asked, answer},
#define CUAUDIT_UNASKED_SETTING(set, of, object, key, value) {BaseId::set, SettingOf::of, object, key, value, kNoQuestion, kNo, kNo, kNo},
#include "faults/driver/settings.def"
#undef CUAUDIT_UNASKED_SETTING
#undef CUAUDIT_SETTING
#undef CUAUDIT_INITIAL
};

struct InitialRow {
  BaseId set;
  std::uint64_t key, value;
};
inline constexpr InitialRow kInitialSettings[] = {
#define CUAUDIT_SETTING(...)
#define CUAUDIT_UNASKED_SETTING(...)
#define CUAUDIT_INITIAL(set, key, value) {BaseId::set, key, value},
#include "faults/driver/settings.def"
#undef CUAUDIT_INITIAL
#undef CUAUDIT_UNASKED_SETTING
#undef CUAUDIT_SETTING
};

}  // namespace cuaudit::driver
