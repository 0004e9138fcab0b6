// deaths.c: a program that dies or hangs at a known place when the allocation in the middle of its lifecycle fails, or that handles signals
// on its own and must not notice that it is audited.
// Usage   deaths MODE
//   dies     null · field (of a null structure) · call (of a null function) · unmapped · protected · argument
//            (of a driver call) · noncanonical · abort · assert · divide · illegal · trap · overflow · thread · bus · after_reset (the default
//            disposition was set again) · chained (its own handler aborts) · sent · own_death (its own
//            handler ends the program)
//   hangs    event (cuEventSynchronize) · loop · lock · beside (a thread in the driver, the first one joins it)
//   handles  recovers · own_stack · caught_abort · asks (which dispositions it sees) · ignores · request (by its own handler)
#undef NDEBUG /* assert ends the program in every build */
#include <assert.h>
#include <cuda.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *mode = "";
static CUcontext context;
static CUstream stream;
static CUevent event;
static volatile int zero;
static int *volatile nowhere;
static sigjmp_buf back;
static char own_stack[1 << 16];

typedef struct Field {
  char before[24];
  int value;
} Field;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static int write_to(volatile int *place) {
  *place = 1;
  return *place;
}

static int *mapped(int allowed) {
  int *memory = mmap(NULL, 4096, allowed, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static int use_after_unmap(void) {
  int *memory = mapped(PROT_READ | PROT_WRITE);
  munmap(memory, 4096);
  return write_to(memory);
}

static int pass_bad_argument(void) {
  CUdeviceptr memory = 0;
  if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) return 2;
  return cuMemcpyHtoD(memory, mapped(PROT_NONE), 64) != CUDA_SUCCESS;
}

static int beyond_the_file(void) {
  FILE *file = tmpfile();
  int *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  return write_to(memory);
}

static int recurse(volatile char *above) {
  volatile char here[4096];
  here[0] = above[0];
  return zero == 0 ? recurse(here) + here[0] : 0;
}

static int call_nothing(void) {
  int (*volatile function)(void) = (int (*)(void))nowhere;
  const int result = function();
  return result + zero;
}

// The sanitizer would end the program before the processor does.
__attribute__((no_sanitize("undefined"))) static int divide(int number) { return number / zero; }

static int give_up(void) {
  abort();
  return zero;
}

static void *die_there(void *place) {
  write_to(place);
  return NULL;
}

static int in_a_thread(void *(*function)(void *)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, NULL) != 0) return 2;
  return pthread_join(thread, NULL);
}

static void abort_in_handler(int number) {
  (void)number;
  abort();
}

static int chain(void) {
  signal(SIGSEGV, &abort_in_handler);
  return write_to(nowhere);
}

/* By system calls, as runtimes with signal handling of their own do it. */
static void die_of_it(int number) {
  long nothing[4] = {0};
  syscall(SYS_rt_sigaction, number, nothing, NULL, 8);
  kill(getpid(), number);
}

static int own_death(void) {
  signal(SIGSEGV, &die_of_it);
  return write_to(nowhere);
}

static int after_reset(void) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = &abort_in_handler;
  sigaction(SIGSEGV, &action, NULL);
  signal(SIGSEGV, SIG_DFL);
  return write_to(nowhere);
}

static void *wait_for_event(void *nothing) {
  (void)nothing;
  cuCtxSetCurrent(context);
  cuEventSynchronize(event);
  return NULL;
}

static void hold(void *nothing) {
  (void)nothing;
  for (;;) pause();
}

static int wait_for_the_device(int beside) {
  cuLaunchHostFunc(stream, &hold, NULL);
  cuEventRecord(event, stream);
  if (beside) return in_a_thread(&wait_for_event);
  wait_for_event(NULL);
  return 0;
}

static int loop_for_ever(void) {
  while (zero == 0) ++nowhere;
  return zero;
}

static int lock_twice(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  return pthread_mutex_lock(&mutex);
}

static int die(void) {
  if (is("null")) return write_to(nowhere);
  if (is("field")) return write_to(&((Field *)nowhere)->value);
  if (is("call")) return call_nothing();
  if (is("unmapped")) return use_after_unmap();
  if (is("protected")) return write_to(mapped(PROT_READ));
  if (is("argument")) return pass_bad_argument();
  if (is("noncanonical")) return write_to((int *)0x1234567812345678);
  if (is("abort")) return give_up();
  if (is("assert")) assert(zero);
  if (is("divide")) return divide(42);  // 1 divided by x needs no division
  if (is("illegal")) __builtin_trap();
  if (is("trap")) __asm__ volatile("int3");
  if (is("overflow")) return recurse((volatile char *)mode);
  if (is("thread")) return in_a_thread(&die_there);
  if (is("bus")) return beyond_the_file();
  if (is("after_reset")) return after_reset();
  if (is("chained")) return chain();
  if (is("own_death")) return own_death();
  if (is("sent")) return raise(SIGFPE);
  if (is("event")) return wait_for_the_device(0);
  if (is("beside")) return wait_for_the_device(1);
  if (is("loop")) return loop_for_ever();
  if (is("lock")) return lock_twice();
  return 1;
}

static void jump_back(int number) {
  stack_t now;
  sigaltstack(NULL, &now);
  printf("signal %d, on a stack of its own: %d\n", number, (now.ss_flags & SS_ONSTACK) != 0);
  fflush(stdout);
  siglongjmp(back, 1);
}

static int recover(int number, int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = &jump_back;
  action.sa_flags = flags;
  sigaction(number, &action, NULL);
  if (sigsetjmp(back, 1) == 0) {
    if (number == SIGABRT) abort();
    write_to(nowhere);
  }
  return 0;
}

static void print_disposition(int number) {
  struct sigaction action;
  sigaction(number, NULL, &action);
  printf("signal %d: default %d, flags %#x\n", number, action.sa_handler == SIG_DFL, (unsigned)action.sa_flags);
}

static int handle(void) {
  const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGTERM, SIGRTMAX - 3};
  size_t i;
  if (is("recovers")) return recover(SIGSEGV, SA_NODEFER);
  if (is("caught_abort")) return recover(SIGABRT, 0);
  if (is("own_stack")) {
    stack_t stack, before;
    memset(&stack, 0, sizeof(stack));
    stack.ss_sp = own_stack;
    stack.ss_size = sizeof(own_stack);
    sigaltstack(&stack, &before);
    printf("a stack before: %d\n", (before.ss_flags & SS_DISABLE) == 0);
    return recover(SIGSEGV, SA_ONSTACK);
  }
  if (is("ignores")) {
    printf("was default: %d\n", signal(SIGABRT, SIG_IGN) == SIG_DFL);
    raise(SIGABRT);
    printf("was ignored: %d\n", signal(SIGABRT, SIG_DFL) == SIG_IGN);
    printf("was default: %d\n", signal(SIGABRT, SIG_DFL) == SIG_DFL);
    return 0;
  }
  for (i = 0; is("asks") && i < sizeof(numbers) / sizeof(numbers[0]); ++i) print_disposition(numbers[i]);
  return 0;
}

static void say_so(int number) {
  (void)number;
  if (write(STDOUT_FILENO, "asked\n", 6) != 6) _exit(3);
}

int main(int argc, char **argv) {
  CUdeviceptr memory;
  int status;
  if (argc > 1) mode = argv[1];
  if (is("request")) signal(SIGRTMAX - 3, &say_so);
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 1;
  if (cuStreamCreate(&stream, 0) != CUDA_SUCCESS || cuEventCreate(&event, 0) != CUDA_SUCCESS) return 1;
  status = handle();
  if (cuMemAlloc(&memory, 64) != CUDA_SUCCESS) {
    if (is("request")) return loop_for_ever();
    status = die();
  } else {
    cuMemFree(memory);
  }
  cuEventDestroy(event);
  cuStreamDestroy(stream);
  cuCtxDestroy(context);
  printf("ends with %d\n", status);
  return status;
}
