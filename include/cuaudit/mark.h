/* SPDX-License-Identifier: MIT
 * mark.h: tells cuaudit where a cycle begins and ends, which phase runs, and what the program's own memory pool does. Header-only C,
 * nothing to link.
 *
 *   Owns      nothing.
 *   Threads   any thread; cycles and phases are the process's, not the thread's.
 *   Errors    none: without cuaudit in the process every mark is one test of a null address.
 *   Faults    makes no driver calls.
 *   Source    ours; the drop-in library defines the weak symbol.
 *
 *     for (int i = 0; i < n; ++i) {
 *       cuaudit_cycle_begin();
 *       cuaudit_phase(CUAUDIT_INIT);      set_up();
 *       cuaudit_phase(CUAUDIT_WORK);      work();
 *       cuaudit_phase(CUAUDIT_TEARDOWN);  tear_down();
 *       cuaudit_report(error);            what the cycle told its caller: 0, the CUresult, or -1 for a failure without a code
 *       cuaudit_cycle_end();
 *     }
 *
 * A program that reports is held to it: success after a call that failed, an error that no call answered, and a failure that leaves its
 * output written (cuaudit_output, before the report) are findings. Without reports the exit status is all that it says.
 *
 * A pool that cuts device memory into blocks says so when it hands one out and when it takes one back:
 *
 *     void* pool_allocate(...) { ... cuaudit_block_out(address, bytes); return ...; }
 *     void  pool_free(...)     { cuaudit_block_back(address); ... }
 *
 * Then a block is an object like any other: never given back (leak), given back twice (double_release), named by a call after it was
 * given back and before it is handed out again (use_after_release), handed out while a part of it is out (handed_out_twice). A launch of
 * a graph is not held to it: a pool may keep what it took back for the graph that uses it. Of pools inside of pools only one may speak.
 * What the pool itself does to a block (a fill with poison) comes before cuaudit_block_back. A block that is out when the pool gives its
 * memory back to the driver counts as never given back.
 */
#ifndef CUAUDIT_MARK_H
#define CUAUDIT_MARK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CUAUDIT_CYCLE_BEGIN = 0, CUAUDIT_CYCLE_END = 1, CUAUDIT_PHASE = 2, CUAUDIT_REPORT = 3, CUAUDIT_OUTPUT = 4 };
enum { CUAUDIT_ANY = 0, CUAUDIT_INIT = 1, CUAUDIT_WORK = 2, CUAUDIT_TEARDOWN = 3, CUAUDIT_UNWIND = 4 };

enum { CUAUDIT_BLOCK_OUT = 0, CUAUDIT_BLOCK_BACK = 1 };

void cuaudit_mark(int what, int value) __attribute__((weak));
/* The drop-in library's; and, while a lifecycle or a Watch is under way in this process, cuaudit's own: 1 when it took note. */
void cuaudit_block(int what, uint64_t address, uint64_t bytes) __attribute__((weak));
int cuaudit_watched_block(int what, uint64_t address, uint64_t bytes) __attribute__((weak));

static inline void cuaudit_cycle_begin(void) {
  if (cuaudit_mark) cuaudit_mark(CUAUDIT_CYCLE_BEGIN, 0);
}
static inline void cuaudit_cycle_end(void) {
  if (cuaudit_mark) cuaudit_mark(CUAUDIT_CYCLE_END, 0);
}
static inline void cuaudit_phase(int phase) {
  if (cuaudit_mark) cuaudit_mark(CUAUDIT_PHASE, phase);
}
static inline void cuaudit_report(int code) {
  if (cuaudit_mark) cuaudit_mark(CUAUDIT_REPORT, code);
}
/* Whether the output of what is about to be reported is set: a handle that is not null, a size that is not zero. */
static inline void cuaudit_output(int written) {
  if (cuaudit_mark) cuaudit_mark(CUAUDIT_OUTPUT, written);
}
static inline void cuaudit_block_out(uint64_t address, uint64_t bytes) {
  if (cuaudit_watched_block && cuaudit_watched_block(CUAUDIT_BLOCK_OUT, address, bytes)) return;
  if (cuaudit_block) cuaudit_block(CUAUDIT_BLOCK_OUT, address, bytes);
}
static inline void cuaudit_block_back(uint64_t address) {
  if (cuaudit_watched_block && cuaudit_watched_block(CUAUDIT_BLOCK_BACK, address, 0)) return;
  if (cuaudit_block) cuaudit_block(CUAUDIT_BLOCK_BACK, address, 0);
}

#ifdef __cplusplus
}
#endif
#endif
