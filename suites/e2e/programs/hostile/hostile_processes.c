// SPDX-License-Identifier: MIT
// hostile_processes.c: hostile programs of processes and of signals; a definition chooses the program.
//
// hostile_signals (HOSTILE_SIGNALS): programs that take signals for themselves, leave functions by jumps, die of rare signals, and send
// some to cuaudit.
//
//   Usage   hostile_signals MODE [loses]      the modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h
//
// hostile_processes: programs that make processes in every way, hide in them, and leave the places where one looks for them.
// Usage   hostile_processes MODE [loses]      the modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h
#if defined(HOSTILE_SIGNALS)
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
#else
#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_story.h"

enum { kChildren = 16, kStackBytes = 1 << 18 };

static char *itself[] = {NULL, (char *)"plain", NULL, NULL};

static void pause_for_ever(void) {
  for (;;) pause();
}

static int status_of(pid_t child) {
  int status = 0;
  if (child < 0) return 9;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 9;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

/* What is held stays, and no context is current any more. */
static int let_go(void) { return cuCtxPopCurrent(NULL) != CUDA_SUCCESS; }

/* A daemon lives as long as somebody reads its output. */
static void live_on(void) {
  struct pollfd output = {STDOUT_FILENO, 0, 0};
  poll(&output, 1, 20000);
  _exit(0);
}

/* Parent, child in a session of its own, grandchild. The parent ends when the grandchild has said how it went. */
static int double_fork(int lives_on) {
  int ends[2];
  char answer = 9;
  if (pipe(ends) != 0) return 9;
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    answer = (char)(lives_on ? hold() || make_event() : whole_story());
    if (write(ends[1], &answer, 1) != 1) _exit(9);
    if (lives_on) {
      close(ends[1]);
      live_on();
    }
    _exit(0);
  }
  close(ends[1]);
  wait(NULL);
  if (read(ends[0], &answer, 1) != 1) answer = 9;
  /* The grandchild holds the other end until it has ended. */
  if (!lives_on && read(ends[0], itself, 1) != 0) answer = 9;
  close(ends[0]);
  return answer;
}

static int vfork_exec(void) {
  const pid_t child = vfork();
  if (child == 0) {
    execv(itself[0], itself);
    _exit(9);
  }
  return status_of(child);
}

static pid_t new_process(void) {
  struct clone_args how;
  memset(&how, 0, sizeof(how));
  how.exit_signal = SIGCHLD;
  return (pid_t)syscall(SYS_clone3, &how, sizeof(how));
}

static int clone3_child(void) {
  const pid_t child = new_process();
  if (child == 0) _exit(whole_story());
  return child < 0 ? kNotAllowed : status_of(child);
}

/* No handler of pthread_atfork has run in the child: the driver that it inherited must refuse it all the same. */
static int clone3_inherits(void) {
  int status;
  pid_t child;
  if (hold() != 0) return 1;
  if ((child = new_process()) == 0) _exit(cuStreamDestroy(stream) == CUDA_SUCCESS ? 9 : 0);
  status = child < 0 ? kNotAllowed : status_of(child);
  if (status == 0) status = make_event();
  give_back();
  return status;
}

static int told_by_clone(void *nothing) {
  (void)nothing;
  return whole_story();
}

static int shared_memory_child(void) {
  char *stack = malloc(kStackBytes);
  int status;
  if (stack == NULL) return 9;
  status = status_of(clone(&told_by_clone, stack + kStackBytes, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
  free(stack);
  return status;
}

static int exec_while_holding(void) {
  if (hold() != 0 || let_go() != 0) return 1;
  execv(itself[0], itself);
  return 9;
}

/* All are alive before the first one begins. */
static int many_children(void) {
  pid_t children[kChildren];
  int gate[2], i, status = 0;
  char byte;
  if (pipe(gate) != 0) return 9;
  for (i = 0; i < kChildren; ++i) {
    children[i] = fork();
    if (children[i] != 0) continue;
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 0) _exit(9);
    _exit(whole_story());
  }
  close(gate[1]);
  close(gate[0]);
  for (i = 0; i < kChildren; ++i) status |= status_of(children[i]);
  return status;
}

/* The kernel reaps the children of who ignores SIGCHLD, so only a pipe tells how it went. */
static int unwaited_child(void) {
  int ends[2];
  char answer = 9;
  signal(SIGCHLD, SIG_IGN);
  if (pipe(ends) != 0) return 9;
  if (fork() == 0) {
    answer = (char)whole_story();
    _exit(write(ends[1], &answer, 1) != 1);
  }
  close(ends[1]);
  if (read(ends[0], &answer, 1) != 1) answer = 9;
  if (wait(NULL) >= 0) answer = 9;
  return answer;
}

/* As root without a user namespace, so that files keep their owner. */
static int separated(int what) { return unshare(what) == 0 || unshare(what | CLONE_NEWUSER) == 0; }

static int first_in_namespace(void) {
  pid_t child;
  if (!separated(CLONE_NEWPID)) return kNotAllowed;
  if ((child = fork()) == 0) _exit(getpid() == 1 ? whole_story() : 9);
  return status_of(child);
}

static int hide_proc(void) {
  if (!separated(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return kNotAllowed;
  return mount("nothing", "/proc", "tmpfs", 0, NULL) == 0 ? 0 : kNotAllowed;
}

static int enter_jail(void) {
  if (chroot("/dev") != 0 && (unshare(CLONE_NEWUSER) != 0 || chroot("/dev") != 0)) return kNotAllowed;
  return chdir("/") == 0 ? 0 : 9;
}

static void once_refused(void) {
  if (is("joins_our_group")) {
    if (setpgid(0, getpgid(getppid())) != 0) return;
    pause_for_ever();
  }
  if (is("stops")) {
    raise(SIGSTOP);
    pause_for_ever();
  }
  if (is("traced")) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) raise(SIGUSR1);
    pause_for_ever();
  }
}

static int go(void) {
  int status = 0;
  if (is("double_fork")) return double_fork(0);
  if (is("daemon_holds")) return double_fork(1);
  if (is("vfork_exec")) return vfork_exec();
  if (is("clone3")) return clone3_child();
  if (is("clone3_inherits")) return clone3_inherits();
  if (is("clone_vm")) return shared_memory_child();
  if (is("exec_while_holding")) return exec_while_holding();
  if (is("many_children")) return many_children();
  if (is("unwaited_child")) return unwaited_child();
  if (is("pid_namespace")) return first_in_namespace();
  if (is("no_proc")) status = hide_proc();
  if (is("jail")) status = enter_jail();
  if (is("undumpable")) status = prctl(PR_SET_DUMPABLE, 0) == 0 ? 0 : kNotAllowed;
  if (status != 0) return status;
  if (hold() != 0) return 1;
  status = make_event();
  if (status != 0) once_refused();
  give_back();
  return status;
}

int main(int argc, char **argv) {
  read_arguments(argc, argv);
  itself[0] = argv[0];
  if (loses) itself[2] = (char *)"loses";
  return go();
}
#endif
