// SPDX-License-Identifier: MIT
// c_names.c: C functions whose names are also mangled names of types, and a section of symbols for symbolizer_test.cc; built without debug
// information: only the symbol table has them.
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

// SYMBOL(name, binding, offset in the section, size)
#define SYMBOL(name, binding, offset, size) \
  "." binding " " name "\n.type " name ", %function\n.set " name ", symbols_begin + " offset "\n.size " name ", " size "\n"
// clang-format off
__asm__(".pushsection laid_out, \"ax\", %progbits\n"
        "symbols_begin: .skip 42, 0xcc\n"       // a local label
        SYMBOL("sym_first", "globl", "0", "4")  // then 4 bytes of nobody
        SYMBOL("sym_outer", "globl", "8", "8")
        SYMBOL("sym_inner", "globl", "10", "2")
        SYMBOL("sym_within", "local", "13", "2")
        SYMBOL("sym_long", "globl", "16", "4")
        SYMBOL("sym_short", "globl", "16", "2")
        SYMBOL("sym_weak", "weak", "20", "4")
        SYMBOL("sym_strong", "globl", "20", "4")
        SYMBOL("sym_alias", "globl", "24", "2")
        SYMBOL("sym_alias_too", "globl", "24", "2")
        SYMBOL("sym_hidden", "local", "26", "2")
        SYMBOL("sym_seen", "globl", "26", "2")
        SYMBOL("sym_local", "local", "28", "2")
        SYMBOL("sym_label", "globl", "32", "0")  // then 4 bytes
        SYMBOL("sym_last", "globl", "36", "2")
        SYMBOL("sym_late", "local", "38", "2")  // then 2 bytes
        ".popsection\n");
// clang-format on
