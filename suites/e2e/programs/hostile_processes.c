// SPDX-License-Identifier: MIT
// hostile_processes.c: programs that make processes in every way, hide in them, and leave the places where one looks for them.
// Usage   hostile_processes MODE [loses]      the modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h
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
