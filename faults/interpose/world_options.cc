// SPDX-License-Identifier: MIT
#include "faults/interpose/world_options.h"

#include <stdio.h>
#include <string.h>

namespace cuaudit::faults {
namespace {

using sim::Schedule;

constexpr std::string_view kKeys[] = {
#define CUAUDIT_WORLD_OPTION(key, flag, operand, fallback, help) #key,
#include "faults/interpose/world_options.def"
#undef CUAUDIT_WORLD_OPTION
};

constexpr std::uint64_t kMega = std::uint64_t{1} << 20;
constexpr std::uint64_t kLeastMemory = 64 * kMega;
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;
constexpr const char* kProfiles[] = {"h200", "small"};
constexpr char kSchedules[] = "lazy, fifo, random:SEED with a SEED from 0 to 18446744073709551615, or adversarial";
constexpr char kSizes[] = "a size from 64MiB to 1024GiB: a number of bytes, or one followed by KiB, MiB or GiB";

// Used instead of string_view members that take a position: they can throw, and this library has no C++ runtime.
bool TakePrefix(std::string_view prefix, std::string_view* text) noexcept {
  if (text->size() < prefix.size() || std::string_view(text->data(), prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

bool TakeSuffix(std::string_view suffix, std::string_view* text) noexcept {
  if (text->size() < suffix.size()) return false;
  const std::size_t rest = text->size() - suffix.size();
  if (std::string_view(text->data() + rest, suffix.size()) != suffix) return false;
  text->remove_suffix(suffix.size());
  return true;
}

// Returns true when all of `text` is a decimal number that fits.
bool ParseNumber(std::string_view text, std::uint64_t* number) noexcept {
  if (text.empty()) return false;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    const std::uint64_t digit = static_cast<std::uint64_t>(c - '0');
    if (value > (~std::uint64_t{0} - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *number = value;
  return true;
}

bool ParseSize(std::string_view text, std::uint64_t* bytes) noexcept {
  struct Unit {
    std::string_view name;
    unsigned shift;
  };
  unsigned shift = 0;
  for (const Unit unit : {Unit{"KiB", 10}, Unit{"MiB", 20}, Unit{"GiB", 30}}) {
    if (shift == 0 && TakeSuffix(unit.name, &text)) shift = unit.shift;
  }
  std::uint64_t number = 0;
  if (!ParseNumber(text, &number) || number > ~std::uint64_t{0} >> shift) return false;
  *bytes = number << shift;
  return true;
}

const char* SetSchedule(std::string_view value, WorldRequest* request) noexcept {
  if (value == "lazy") {
    request->world.schedule = Schedule::Lazy;
  } else if (value == "fifo") {
    request->world.schedule = Schedule::Fifo;
  } else if (value == "adversarial") {
    request->world.schedule = Schedule::Adversarial;
  } else if (TakePrefix("random:", &value)) {
    std::uint64_t seed = 0;
    if (!ParseNumber(value, &seed)) return kSchedules;
    if (request->seeded) return "the seed once: in random:SEED or as seed";
    request->world.schedule = Schedule::Random;
    request->world.seed = seed;
  } else {
    return kSchedules;
  }
  return nullptr;
}

const char* SetValue(std::string_view key, std::string_view value, WorldRequest* request) noexcept {
  std::uint64_t number = 0;
  if (key == "schedule") return SetSchedule(value, request);
  if (key == "devices") {
    if (!ParseNumber(value, &number) || number < 1 || number > 8) return "a number of devices from 1 to 8";
    request->world.device_count = static_cast<int>(number);
    return nullptr;
  }
  if (key == "device_memory") {
    if (!ParseSize(value, &number) || number < kLeastMemory || number > kMostMemory) return kSizes;
    request->device_memory = number;
    return nullptr;
  }
  if (key == "profile") {
    for (const char* const name : kProfiles) {
      if (value != name) continue;
      request->world.profile = name;
      return nullptr;
    }
    return "h200 or small";
  }
  if (key == "seed") {
    if (!ParseNumber(value, &number)) return "a number from 0 to 18446744073709551615";
    if (request->world.schedule == Schedule::Random) return "the seed once: in random:SEED or as seed";
    request->world.seed = number;
    request->seeded = true;
    return nullptr;
  }
  if (key == "undefined") {
    if (value != "error" && value != "crash") return "error or crash";
    request->world.undefined = value == "crash" ? sim::OnUndefined::Crash : sim::OnUndefined::Error;
    return nullptr;
  }
  if (key == "kernels") {
    if (value.empty() || value.front() != '/' || value.size() >= kMaxKernelsPath) return "an absolute path shorter than 1024 bytes";
    for (const char c : value) {
      if (c == ';') return "a path without ';'";
    }
    memcpy(request->kernels, value.data(), value.size());
    request->kernels[value.size()] = '\0';
    return nullptr;
  }
  return "an option of the simulated driver";
}

const char* Name(Schedule schedule) noexcept {
  switch (schedule) {
    case Schedule::Lazy:
      return "lazy";
    case Schedule::Fifo:
      return "fifo";
    case Schedule::Random:
      return "random";
    case Schedule::Adversarial:
      return "adversarial";
  }
  return "";
}

}  // namespace

bool IsWorldKey(std::string_view key) noexcept {
  for (const std::string_view known : kKeys) {
    if (known == key) return true;
  }
  return false;
}

const char* SetWorldOption(std::string_view key, std::string_view value, WorldRequest* request) noexcept {
  const char* const expected = SetValue(key, value, request);
  if (expected != nullptr) return expected;
  if (request->given == nullptr) {
    for (const std::string_view known : kKeys) {
      if (known == key) request->given = known.data();
    }
  }
  return nullptr;
}

std::size_t FormatWorld(const WorldRequest& request, std::uint64_t granted_memory, char* text, std::size_t capacity) noexcept {
  const sim::WorldOptions& world = request.world;
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  const bool whole = granted_memory % kMega == 0;
  const bool random = world.schedule == Schedule::Random;
  char seed[32];
  snprintf(seed, sizeof(seed), "%llu", number(world.seed));
  const int length = snprintf(
      text, capacity, "schedule=%s%s%s;devices=%d;device_memory=%llu%s;profile=%s%s%s%s%s%s", Name(world.schedule), random ? ":" : "",
      random ? seed : "", world.device_count, number(whole ? granted_memory / kMega : granted_memory), whole ? "MiB" : "", world.profile,
      random ? "" : ";seed=", random ? "" : seed, world.undefined == sim::OnUndefined::Crash ? ";undefined=crash" : "",
      request.kernels[0] == '\0' ? "" : ";kernels=", request.kernels);
  return length < 0 ? 0 : static_cast<std::size_t>(length);
}

}  // namespace cuaudit::faults
