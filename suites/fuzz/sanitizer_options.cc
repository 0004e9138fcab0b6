// SPDX-License-Identifier: MIT
// What AddressSanitizer keeps, for programs of some ten thousand small runs a second: 256 MiB of freed blocks are page faults and little
// else.
extern "C" const char* __asan_default_options();  // NOLINT(bugprone-reserved-identifier): the sanitizer's name

extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=8:malloc_context_size=6";
}  // NOLINT(bugprone-reserved-identifier)
