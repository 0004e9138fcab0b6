// SPDX-License-Identifier: MIT
// The text of a fault, the options of the drop-in, and the description of a simulated world inside them. First byte: which of them.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "faults/interpose/options.h"
#include "include/cuaudit/fuzz_input.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {
namespace {

using faults::Fault;

void TryFault(std::string_view text) {
  Fault fault;
  const faults::ParseError error = faults::ParseFault(text, &fault);
  if (error.expected != nullptr) {
    Require(error.column >= 1 && error.column <= text.size() + 1, "a wrong character stands in the text or behind it");
    return;
  }
  char formatted[faults::kMaxFaultText];
  const std::size_t length = faults::FormatFault(fault, formatted, sizeof(formatted));
  Require(length == std::strlen(formatted) && length < sizeof(formatted), "every fault fits kMaxFaultText");
  Fault again;
  Require(faults::ParseFault({formatted, length}, &again).expected == nullptr, "a formatted fault can be read", formatted);
  Require(again == fault, "a formatted fault is the same fault", formatted);
}

void TryWorld(const faults::WorldRequest& request) {
  char text[faults::kMaxWorldText];
  const std::uint64_t memory = request.device_memory != 0 ? request.device_memory : std::uint64_t{1} << 30;
  const std::size_t length = faults::FormatWorld(request, memory, text, sizeof(text));
  Require(length < sizeof(text), "every world fits kMaxWorldText");
  faults::InterposeOptions options;
  char message[512];
  const char* const wrong = faults::ParseOptions(text, &options, message, sizeof(message));
  Require(wrong == nullptr, "a formatted world can be read", text);
  char again[faults::kMaxWorldText];
  (void)faults::FormatWorld(options.world, options.world.device_memory, again, sizeof(again));
  Require(std::strcmp(text, again) == 0, "a formatted world is the same world", text);
}

void TryOptions(const std::string& text) {
  faults::InterposeOptions options;
  char message[512] = "";
  const char* const wrong = faults::ParseOptions(text.c_str(), &options, message, sizeof(message));
  if (wrong != nullptr) {
    Require(wrong == message, "what is wrong stands in the buffer");
    Require(std::strstr(message, "expected ") != nullptr && std::strlen(message) < sizeof(message), "the line says what was expected",
            message);
    Require(std::strpbrk(message, "\n\r") == nullptr, "it is one line", message);
    return;
  }
  for (std::size_t i = 0; i < options.plan.size(); ++i) {
    char fault[faults::kMaxFaultText];
    TryFault({fault, faults::FormatFault(options.plan.fault(i), fault, sizeof(fault))});
  }
  TryWorld(options.world);
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::FuzzInput input(data, size);
  const bool options = input.Below(2) == 1;
  const std::string_view text = input.Rest();
  if (!options) cuaudit::fuzz::TryFault(text);
  if (options) cuaudit::fuzz::TryOptions(std::string(text));
  return 0;
}
