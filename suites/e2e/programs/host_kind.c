// SPDX-License-Identifier: MIT
// host_kind.c: loses exactly one host resource in each cycle, by one way of acquiring it, or none.
// Usage   host_kind WAY CYCLES [clean] · host_kind --list
#include <cuaudit/mark.h>
#include <cuda.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <threads.h>
#include <unistd.h>

enum { kBytes = 3 * 4096, kMost = 4096 };

// Reachable until the end: what LeakSanitizer does not call a leak.
void *kept[kMost];
static int count;

static int keep(void *what) {
  if (what == NULL || count == kMost) return 1;
  kept[count++] = what;
  return 0;
}

static int host_heap(int clean) {
  void *block = malloc(100);
  if (clean) free(block);
  return clean ? 0 : keep(block);
}

static int resized(int clean) {
  void *block = malloc(100);
  block = realloc(block, 5000);
  if (clean) free(block);
  return clean ? 0 : keep(block);
}

static int unreachable(int clean) {
  void *volatile block = malloc(100);
  if (clean) free(block);
  block = NULL;
  return 0;
}

static int library(int clean) {
  void *handle = dlopen("libm.so.6", RTLD_NOW);
  if (clean && handle != NULL) dlclose(handle);
  return clean ? handle == NULL : keep(handle);
}

static int mutex(int clean) {
  static pthread_mutex_t mutexes[kMost];
  pthread_mutex_t *one = &mutexes[count++];
  pthread_mutex_init(one, NULL);
  return clean ? pthread_mutex_destroy(one) : 0;
}

static int settle(int descriptor, int clean) {
  if (descriptor < 0) return 1;
  return clean ? close(descriptor) : 0;
}

static int opened(int clean) { return settle(open("/dev/null", O_RDONLY | O_CLOEXEC), clean); }
static int made(int clean) {
  char path[] = "/tmp/cuaudit-host-kind-XXXXXX";
  const int file = mkstemp(path);
  unlink(path);
  return settle(file, clean);
}
static int socketed(int clean) { return settle(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), clean); }
static int duplicated(int clean) { return settle(dup(1), clean); }
static int duplicated_to(int clean) { return settle(dup2(1, 500 + count++), clean); }
static int event(int clean) { return settle(eventfd(0, EFD_CLOEXEC), clean); }
static int poller(int clean) { return settle(epoll_create1(EPOLL_CLOEXEC), clean); }
static int timer(int clean) { return settle(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), clean); }
static int memory(int clean) { return settle(memfd_create("one", MFD_CLOEXEC), clean); }
static int watch(int clean) { return settle(inotify_init1(IN_CLOEXEC), clean); }
static int signals(int clean) {
  sigset_t mask;
  sigemptyset(&mask);
  return settle(signalfd(-1, &mask, SFD_CLOEXEC), clean);
}
static int half_a_pipe(int clean) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  close(ends[1]);
  return settle(ends[0], clean);
}
// Past every wrapper: only a census sees it.
static int system_call(int clean) {
  const int file = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 1;
  return clean ? (int)syscall(SYS_close, file) : 0;
}

static int controlled(int clean) { return settle(fcntl(1, F_DUPFD_CLOEXEC, 10), clean); }
static int shared(int clean) {
  char name[64];
  snprintf(name, sizeof(name), "/cuaudit-host-kind-%d", (int)getpid());
  const int file = shm_open(name, O_RDWR | O_CREAT, 0600);
  shm_unlink(name);
  return settle(file, clean);
}
static int terminal(int clean) { return settle(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), clean); }
static int suffixed(int clean) {
  char path[] = "/tmp/cuaudit-host-kind-XXXXXX.x";
  const int file = mkstemps(path, 2);
  unlink(path);
  return settle(file, clean);
}
static int received(int clean) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
  } control;
  char byte = 0;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
  struct cmsghdr *rights;
  int ends[2], file = 1;
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) return 1;
  memset(&control, 0, sizeof(control));
  rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(rights), &file, sizeof(file));
  if (sendmsg(ends[0], &message, 0) != 1) return 1;
  message.msg_controllen = sizeof(control.bytes);
  if (recvmsg(ends[1], &message, MSG_CMSG_CLOEXEC) != 1) return 1;
  memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(file));
  close(ends[0]);
  close(ends[1]);
  return settle(file, clean);
}
static int ranged(int clean) {
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 1;
  return clean ? close_range((unsigned)file, (unsigned)file, 0) : 0;
}
// A standard stream that leads somewhere else is none more.
static int redirected(int clean) {
  const int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (file < 0 || dup2(file, 0) != 0) return 1;
  return settle(file, clean);
}

// Past every wrapper, while another thread waits for a connection that nobody makes.
static void *accepts(void *listener) {
  for (;;) accept((int)(intptr_t)listener, NULL, NULL);
  return NULL;
}
static int beside_accept(int clean) {
  static int started;
  if (!started) {
    struct sockaddr address = {.sa_family = AF_UNIX};
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t one;
    started = 1;
    if (bind(listener, &address, sizeof(address.sa_family)) != 0 || listen(listener, 1) != 0) return 1;
    if (pthread_create(&one, NULL, &accepts, (void *)(intptr_t)listener) != 0) return 1;
    pthread_detach(one);
  }
  return system_call(clean);
}

// The same beside one that waits for the other end of a FIFO.
static char fifo[64];
static void forget_fifo(void) { unlink(fifo); }
static void *opens_fifo(void *none) {
  open(fifo, O_RDONLY | O_CLOEXEC);
  return none;
}
static int beside_fifo(int clean) {
  if (fifo[0] == 0) {
    pthread_t one;
    snprintf(fifo, sizeof(fifo), "/tmp/cuaudit-host-kind-%d.fifo", (int)getpid());
    if (mkfifo(fifo, 0600) != 0 || pthread_create(&one, NULL, &opens_fifo, NULL) != 0) return 1;
    atexit(&forget_fifo);
    pthread_detach(one);
  }
  return system_call(clean);
}

static int stream(int clean) {
  FILE *file = fopen("/dev/null", "re");
  if (file == NULL) return 1;
  return clean ? fclose(file) : 0;
}

static int directory(int clean) {
  DIR *dir = opendir("/");
  if (dir == NULL) return 1;
  return clean ? closedir(dir) : 0;
}

static void *returns(void *argument) { return argument; }

static int thread(int clean) {
  pthread_t one;
  if (pthread_create(&one, NULL, &returns, NULL) != 0) return 1;
  return clean ? pthread_join(one, NULL) : 0;
}

static int returns_zero(void *argument) { return argument != NULL; }
static int thread_of_c(int clean) {
  thrd_t one;
  if (thrd_create(&one, &returns_zero, NULL) != thrd_success) return 1;
  return clean ? thrd_join(one, NULL) != thrd_success : 0;
}

static int own_space(int clean) {
  void *handle = dlmopen(LM_ID_BASE, "libm.so.6", RTLD_NOW);
  if (clean && handle != NULL) dlclose(handle);
  return clean ? handle == NULL : keep(handle);
}

static int mapped(int clean) {
  void *start = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return 1;
  return clean ? munmap(start, kBytes) : 0;
}

static int moved(int clean) {
  void *start = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return 1;
  start = mremap(start, kBytes, 4 * kBytes, MREMAP_MAYMOVE);
  if (start == MAP_FAILED) return 1;
  return clean ? munmap(start, 4 * kBytes) : 0;
}

// One page of three stays.
static int partly_mapped(int clean) {
  char *start = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return 1;
  if (munmap(start, 4096) != 0 || munmap(start + 8192, 4096) != 0) return 1;
  return clean ? munmap(start + 4096, 4096) : 0;
}

// No kind of object: the end of the data segment moves, and only a meter sees it.
static int data_segment(int clean) {
  if (sbrk(kBytes) == (void *)-1) return 1;
  return clean ? sbrk(-kBytes) == (void *)-1 : 0;
}

static const struct {
  const char *name;
  int (*run)(int clean);
} kWays[] = {
    {"host_heap", host_heap},
    {"resized", resized},
    {"unreachable", unreachable},
    {"library", library},
    {"mutex", mutex},
    {"opened", opened},
    {"made", made},
    {"socketed", socketed},
    {"duplicated", duplicated},
    {"duplicated_to", duplicated_to},
    {"event", event},
    {"poller", poller},
    {"timer", timer},
    {"memory", memory},
    {"watch", watch},
    {"signals", signals},
    {"half_a_pipe", half_a_pipe},
    {"system_call", system_call},
    {"controlled", controlled},
    {"shared", shared},
    {"terminal", terminal},
    {"suffixed", suffixed},
    {"received", received},
    {"ranged", ranged},
    {"redirected", redirected},
    {"beside_accept", beside_accept},
    {"beside_fifo", beside_fifo},
    {"stream", stream},
    {"directory", directory},
    {"data_segment", data_segment},
    {"thread", thread},
    {"thread_of_c", thread_of_c},
    {"own_space", own_space},
    {"mapped", mapped},
    {"moved", moved},
    {"partly_mapped", partly_mapped},
};
enum { kWayCount = sizeof(kWays) / sizeof(kWays[0]) };

int main(int argc, char **argv) {
  const int list = argc == 2 && strcmp(argv[1], "--list") == 0;
  int way, i;
  for (way = 0; way < kWayCount; ++way) {
    if (list) puts(kWays[way].name);
    if (list || argc < 3 || strcmp(argv[1], kWays[way].name) != 0) continue;
    if (cuInit(0) != CUDA_SUCCESS) return 2;
    for (i = 0; i < atoi(argv[2]); ++i) {
      cuaudit_cycle_begin();
      if (kWays[way].run(argc > 3) != 0) return 1;
      cuaudit_cycle_end();
    }
    return 0;
  }
  return list ? 0 : 9;
}
