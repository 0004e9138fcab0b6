// SPDX-License-Identifier: MIT
// descriptors.c: a daemon's manners: every file descriptor is closed, also those that this program never opened.
// Usage   descriptors early|late      before the first driver call, or between two lifecycles
#include <string.h>
#include <unistd.h>

#include "lifecycle.h"

static void close_all(void) {
  int fd;
  for (fd = 0; fd < 1024; ++fd) close(fd);
}

int main(int argc, char **argv) {
  static const Api api = {
#define ADDRESS(name) .JOINED(p_, name) = &name,
      LIFECYCLE_CALLS(ADDRESS)
#undef ADDRESS
  };
  int status = 0;
  if (argc > 1 && strcmp(argv[1], "late") == 0) status = lifecycle(&api);
  close_all();
  return status | lifecycle(&api);
}
