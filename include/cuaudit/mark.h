/* SPDX-License-Identifier: MIT
 * mark.h: tells cuaudit where a cycle of the program begins and ends, which phase runs, and which blocks the program's memory pool hands
 * out. Header-only C, nothing to link.
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
 * The drop-in library defines the weak symbols. Without cuaudit in the process each mark is one test of a null address, and no mark
 * fails. Call the marks from any thread; cycles and phases belong to the process, not to the thread.
 *
 * A program that calls cuaudit_report is held to its reports. These are findings: success after a call that failed, an error that no
 * call returned, and a failure that leaves its output written (call cuaudit_output before the report). A program that never reports is
 * judged by its exit status alone.
 *
 * A pool that cuts device memory into blocks tells cuaudit when it hands a block out and when it takes the block back:
 *
 *     void* pool_allocate(...) { ... cuaudit_block_out(address, bytes); return ...; }
 *     void  pool_free(...)     { cuaudit_block_back(address); ... }
 *
 * Such a block is then an object like any other. Findings are: a block that is never given back (leak), a block that is given back twice
 * (double_release), a call that names a block between its return and its next use (use_after_release), and a block that is handed out
 * while a part of it is out (handed_out_twice). Launches of graphs are exempt, because a pool may keep a block for the graph that uses
 * it. When pools are nested, only one of them may report. What the pool itself does to a block, such as filling it with poison, must
 * come before cuaudit_block_back. A block that is out when the pool gives its memory back to the driver counts as never given back.
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
/* cuaudit_block is defined by the drop-in library. cuaudit_watched_block is defined by cuaudit when it runs lifecycles or a Watch in this
 * process; it returns 1 when it has recorded the block. */
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
/* Says whether the output of the operation about to be reported is set: a handle that is not null, a size that is not zero. */
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
