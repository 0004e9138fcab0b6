// SPDX-License-Identifier: MIT
// hostile_signals.c: programs that take signals for themselves, leave functions by jumps, die of rare signals, and send some to cuaudit.
// Usage   hostile_signals MODE [loses]      the modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "hostile_story.h"

static volatile sig_atomic_t seen;
static int *volatile nowhere;
static jmp_buf back;
static sigjmp_buf out;

static void note(int number) { seen = number; }
static void jump_out(int number) { siglongjmp(out, number); }

static void pause_for_ever(void) {
  for (;;) pause();
}

/* By the C library, and where it declines (its own two real-time signals) by the system call. */
static void take_all_signals(void) {
  struct sigaction action;
  int number;
  memset(&action, 0, sizeof(action));
  action.sa_handler = &note;
  action.sa_flags = SA_RESTART;
  for (number = 1; number < 65; ++number) {
    if (sigaction(number, &action, NULL) != 0) signal(number, SIG_IGN);
  }
}

static void block_all_signals(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
}

static void interrupt_often(void) {
  const struct itimerval often = {{0, 200}, {0, 200}};
  signal(SIGALRM, &note);
  setitimer(ITIMER_REAL, &often, NULL);
}

static int limit(__rlimit_resource_t what, rlim_t soft, rlim_t hard) {
  const struct rlimit value = {soft, hard};
  return setrlimit(what, &value);
}

static int forbid_open_files(void) {
  static struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  static const struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

static void check(CUresult result) {
  if (result != CUDA_SUCCESS) longjmp(back, 1);
}

/* An error handler that jumps over the release. */
static int jump_over_release(void) {
  if (setjmp(back) == 0) {
    check(cuEventCreate(&event, 0));
    return 0;
  }
  event = NULL;
  if (loses) stream = NULL;
  return 1;
}

static void jump_out_of_driver(void) {
  void *const page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CUdeviceptr memory = 0;
  if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) return;
  signal(SIGSEGV, &jump_out);
  if (sigsetjmp(out, 1) == 0) cuMemcpyHtoD(memory, page, 64);
  cuMemFree(memory);
}

static void fault_for_ever(void) {
  signal(SIGSEGV, &note);
  *nowhere = 1;
}

static void spin(void) {
  while (seen == 0) ++nowhere;
}

static void before(void) {
  if (is("takes_all")) take_all_signals();
  if (is("blocks_all")) block_all_signals();
  if (is("timer")) interrupt_often();
}

static void while_holding(void) {
  if (is("sandbox")) forbid_open_files();
  if (is("kills_group")) {
    kill(0, SIGTERM);
    pause_for_ever();
  }
}

static void once_refused(void) {
  if (is("blocks_all")) pause_for_ever();
  if (is("jumps_out_of_driver")) jump_out_of_driver();
  if (is("core_limit") && limit(RLIMIT_CORE, 1, 1) == 0) *nowhere = 1;
  if (is("cpu_limit") && limit(RLIMIT_CPU, 1, 2) == 0) spin();
  if (is("faults_for_ever")) fault_for_ever();
  if (is("kills_us")) {
    kill(getppid(), SIGTERM);
    pause_for_ever();
  }
}

int main(int argc, char **argv) {
  int status;
  read_arguments(argc, argv);
  before();
  if (hold() != 0) return 1;
  while_holding();
  status = is("jumps_over_release") ? jump_over_release() : make_event();
  if (status != 0) once_refused();
  give_back();
  return status;
}
