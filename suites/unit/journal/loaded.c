// SPDX-License-Identifier: MIT
// loaded.c: a library to load in a test; two are made of it, of one size and with names of their own.
int loaded(void) { return CUAUDIT_WHICH; }
