// SPDX-License-Identifier: MIT
// c_names.c: C functions whose names are also mangled names of types, built without debug information: only the symbol table has them.
#include <stdint.h>

uintptr_t w(uintptr_t (*place)(void));
uintptr_t i(uintptr_t (*place)(void));

__attribute__((noinline)) uintptr_t w(uintptr_t (*place)(void)) {
  const uintptr_t address = place();
  __asm__ volatile("");
  return address;
}

__attribute__((noinline)) uintptr_t i(uintptr_t (*place)(void)) {
  const uintptr_t address = place();
  __asm__ volatile("nop");
  return address;
}
