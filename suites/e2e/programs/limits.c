// SPDX-License-Identifier: MIT
// limits.c: a program that shuts itself in before its first driver call.
// Usage   limits seccomp|files|size|space
//   seccomp  no new files, processes or sockets from here on: those calls answer EPERM
//   files    no further file descriptor
//   size     no file may grow
//   space    64 GiB of address space
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "lifecycle.h"

#define REFUSE(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static int shut_in(void) {
  static struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      REFUSE(SYS_openat),
      REFUSE(SYS_open),
      REFUSE(SYS_execve),
      REFUSE(SYS_clone),
      REFUSE(SYS_fork),
      REFUSE(SYS_vfork),
      REFUSE(SYS_socket),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  static const struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

static int limit(__rlimit_resource_t what, rlim_t most) {
  const struct rlimit value = {most, most};
  return setrlimit(what, &value) != 0;
}

int main(int argc, char **argv) {
  static const Api api = {
#define ADDRESS(name) .JOINED(p_, name) = &name,
      LIFECYCLE_CALLS(ADDRESS)
#undef ADDRESS
  };
  const char *mode = argc > 1 ? argv[1] : "";
  int failed = 1;
  if (strcmp(mode, "seccomp") == 0) failed = shut_in();
  if (strcmp(mode, "files") == 0) failed = limit(RLIMIT_NOFILE, 3);
  if (strcmp(mode, "size") == 0) failed = limit(RLIMIT_FSIZE, 0);
  if (strcmp(mode, "space") == 0) failed = limit(RLIMIT_AS, (rlim_t)64 << 30);
  if (failed) {
    fprintf(stderr, "limits: cannot set '%s'\n", mode);
    return 9;
  }
  return lifecycle(&api);
}
