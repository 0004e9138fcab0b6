/* SPDX-License-Identifier: MIT
 * marked_reducer.c: a reducer of suites/reducers as it is, in a loop that marks its cycles and reports from each, so that one process can
 * carry out many trials.
 * Usage   NAME_FORM_marked [cycles]      default 4
 */
#define main unmarked_main
#include CUAUDIT_REDUCER
#undef main

#include <cuaudit/mark.h>

int main(int argc, char **argv) {
  const long cycles = argc > 1 ? strtol(argv[1], NULL, 10) : 4;
  long i;
  for (i = 0; i < cycles; ++i) {
    cuaudit_cycle_begin();
    cuaudit_report(run_cycle() == 0 ? 0 : -1); /* the codes of its steps are not its caller's */
    cuaudit_cycle_end();
  }
  return 0;
}
