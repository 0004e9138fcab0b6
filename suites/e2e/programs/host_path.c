// SPDX-License-Identifier: MIT
// host_path.c: a failing path that uses the C library for the first time. Some of what that allocates is a cache of its own, some is
// handed to the caller, who loses it here; and some resources are lost outright.
// Usage   host_path WAY [back]      the way is gone when the allocation of device memory fails; back: what it lost is given back
//         host_path opens           opens and closes a file 5000 times, whatever fails
//         host_path errno           status 7 where closing a stream without a descriptor changed errno
//         host_path lingers         ends while a thread waits in close, and with a descriptor that no wrapped function opened
//         host_path child           a child that never calls the driver destroys a mutex that it holds
#include <cuda.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <iconv.h>
#include <libintl.h>
#include <locale.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static void *volatile lost;
static int back;

static void zone(void) {
  setenv("TZ", "Europe/Berlin", 1);
  tzset();
}
static void local_time(void) {
  time_t now = 1700000000;
  char text[64];
  const struct tm *when = localtime(&now);
  if (when != NULL) strftime(text, sizeof(text), "%c %Z", when);
}
static void locale(void) { setlocale(LC_ALL, "C.UTF-8"); }
static void message(void) {
  bindtextdomain("cuaudit-nothing", "/nonexistent");
  textdomain("cuaudit-nothing");
  lost = gettext("nothing");
}
static void convert(void) {
  iconv_t one = iconv_open("UTF-16", "UTF-8");
  if (one != (iconv_t)-1) iconv_close(one);
}
static void user(void) { lost = getpwuid(0); }
static void log_line(void) { syslog(LOG_DEBUG, "nothing"); }
static void print(void) { fprintf(stderr, "%s %5.3f %ls\n", "no memory", 1.5, L"wide"); }
// What error messages need for the first time.
static void errors(void) {
  fprintf(stderr, "%s\n", strerror(123456));
  errno = ENOMEM;
  perror("host_path");
}
static void trace(void) {
  void *frames[16];
  backtrace_symbols_fd(frames, backtrace(frames, 16), 2);
}
static void addresses(void) {
  struct addrinfo *found = NULL;
  if (getaddrinfo("localhost", "80", NULL, &found) == 0) freeaddrinfo(found);
}
static void buffers(void) {
  setvbuf(stderr, NULL, _IOFBF, 4096);
  fprintf(stderr, "no memory\n");
  printf("no memory\n");
}
static void *returns(void *argument) { return argument; }
static void joined(void) {
  pthread_t one;
  if (pthread_create(&one, NULL, &returns, NULL) == 0) pthread_join(one, NULL);
}

// What glibc says with dlerror it keeps.
static void optional(void) {
  lost = dlopen("libcuaudit-not-there.so.1", RTLD_NOW);
  if (lost == NULL) fprintf(stderr, "%s\n", dlerror());
  lost = dlopen("libcuaudit-not-there.so.1", RTLD_NOW | RTLD_NOLOAD);
}
static void itself(void) { lost = dlopen(NULL, RTLD_NOW); }
static void redirects(void) {
  const int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(file, 2);
  dup3(file, 0, 0);
  close(file);
}
// Its file stays open until endpwent.
static void users(void) {
  setpwent();
  lost = getpwent();
}
static void *detaches(void *argument) {
  pthread_detach(pthread_self());
  return argument;
}
// Which may not have run yet when the program ends.
static void self_detached(void) {
  pthread_t one;
  pthread_create(&one, NULL, &detaches, NULL);
}

static void duplicate(void) { lost = strdup("a text of the program"); }
static void format(void) {
  char *text = NULL;
  if (asprintf(&text, "%d", 7) > 0) lost = text;
}
static void line(void) {
  char *text = NULL;
  size_t size = 0;
  FILE *file = fopen("/proc/self/comm", "re");
  if (file == NULL) return;
  if (getline(&text, &size, file) > 0) lost = text;
  fclose(file);
}
static void resolve(void) { lost = realpath("/proc/self/..", NULL); }
static void own_locale(void) { lost = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0); }
static void stream(void) {
  lost = fopen("/dev/null", "re");
  if (back && lost != NULL) fclose(lost);
}
static void directory(void) {
  lost = opendir("/");
  if (back && lost != NULL) closedir(lost);
}
static void descriptor(void) {
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (back && file >= 0) close(file);
}
static void unseen_descriptor(void) {
  const long file = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);
  if (back && file >= 0) syscall(SYS_close, file);
}
static void thread(void) {
  pthread_t one;
  if (pthread_create(&one, NULL, &returns, NULL) == 0 && back) pthread_join(one, NULL);
}
static void mapping(void) {
  lost = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (back && lost != MAP_FAILED) munmap(lost, 4096);
}
static void library(void) {
  lost = dlopen("libm.so.6", RTLD_NOW);
  if (back && lost != NULL) dlclose(lost);
}
static void mutex(void) {
  static pthread_mutex_t one;
  if (pthread_mutex_init(&one, NULL) == 0 && back) pthread_mutex_destroy(&one);
}

static void locked_mutex(void) {
  static pthread_mutex_t one;
  pthread_mutex_init(&one, NULL);
  pthread_mutex_lock(&one);
  pthread_mutex_destroy(&one);
}

// A shell, with files of its own.
static void helper(void) { (void)!system("exec 9</dev/null"); }

static void opens(void) {
  for (int i = 0; i < 5000; ++i) close(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

// The same program, as a way without a name; unseen: without our preload.
static void execute(int seen) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (!seen) unsetenv("LD_PRELOAD");
    execl("/proc/self/exe", "host_path", "nothing", (char *)NULL);
    _exit(127);
  }
  waitpid(pid, NULL, 0);
}
static void executes(void) { execute(1); }
static void unseen(void) { execute(0); }

static const struct {
  const char *name;
  void (*go)(void);
} kWays[] = {{"zone", zone},
             {"local_time", local_time},
             {"locale", locale},
             {"message", message},
             {"convert", convert},
             {"user", user},
             {"log_line", log_line},
             {"print", print},
             {"errors", errors},
             {"trace", trace},
             {"addresses", addresses},
             {"buffers", buffers},
             {"joined", joined},
             {"optional", optional},
             {"itself", itself},
             {"redirects", redirects},
             {"users", users},
             {"self_detached", self_detached},
             {"duplicate", duplicate},
             {"format", format},
             {"line", line},
             {"resolve", resolve},
             {"own_locale", own_locale},
             {"stream", stream},
             {"directory", directory},
             {"descriptor", descriptor},
             {"unseen_descriptor", unseen_descriptor},
             {"thread", thread},
             {"mapping", mapping},
             {"library", library},
             {"mutex", mutex},
             {"locked_mutex", locked_mutex},
             {"helper", helper},
             {"many", opens},
             {"executes", executes},
             {"unseen", unseen}};

static int closing_changes_errno(void) {
  char buffer[16];
  FILE *const stream = fmemopen(buffer, sizeof(buffer), "w");
  if (stream == NULL) return 0;
  errno = 0;
  return fclose(stream) != 0 || errno != 0;
}

static _Atomic int closing;
static void *closes(void *descriptor) {
  closing = (int)syscall(SYS_gettid);
  close((int)(intptr_t)descriptor);
  return NULL;
}
static char state_of(int thread) {
  char path[64], text[128], state = 0;
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  if (fgets(text, sizeof(text), file) != NULL && strrchr(text, ')') != NULL) state = strrchr(text, ')')[2];
  fclose(file);
  return state;
}
// What was sent and is not read is waited for by close.
static int lingers(void) {
  static char bytes[1 << 16];
  const struct linger wait = {1, 600};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof(address);
  pthread_t one;
  const int listener = socket(AF_INET, SOCK_STREAM, 0), writer = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 1) != 0) return 1;
  if (getsockname(listener, (struct sockaddr *)&address, &length) != 0) return 1;
  if (connect(writer, (struct sockaddr *)&address, length) != 0) return 1;
  while (send(writer, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) continue;
  setsockopt(writer, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait));
  if (pthread_create(&one, NULL, &closes, (void *)(intptr_t)writer) != 0) return 1;
  pthread_detach(one);
  while (closing == 0 || state_of(closing) != 'S') sched_yield();
  return syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY) < 0;
}

static void child(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    pthread_mutex_t one;
    pthread_mutex_init(&one, NULL);
    pthread_mutex_lock(&one);
    pthread_mutex_destroy(&one);
    exit(0);
  }
  waitpid(pid, NULL, 0);
}

int main(int argc, char **argv) {
  CUcontext context;
  CUdeviceptr memory;
  size_t way;
  int status = 0;
  back = argc > 2;
  if (argc < 2 || cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 9;
  if (strcmp(argv[1], "opens") == 0) opens();
  if (strcmp(argv[1], "child") == 0) child();
  if (strcmp(argv[1], "lingers") == 0 && lingers()) return 8;
  if (strcmp(argv[1], "errno") == 0 && closing_changes_errno()) return 7;
  if (cuMemAlloc(&memory, 64) == CUDA_SUCCESS) {
    cuMemFree(memory);
  } else {
    status = 1;
    for (way = 0; way < sizeof(kWays) / sizeof(kWays[0]); ++way) {
      if (strcmp(argv[1], kWays[way].name) == 0) kWays[way].go();
    }
  }
  cuCtxDestroy(context);
  return status;
}
