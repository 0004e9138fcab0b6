// SPDX-License-Identifier: MIT
// late_library.c: each cycle forks a child that opens the driver's library, lets it work and closes it; with LATE_DRIVER that library,
// named as the driver's own are, which keeps a block and a mutex for itself and calls its caller back meanwhile.
//
// Usage   late_library LIBRARY clean|leaks CYCLES. `leaks`: the program's own callback keeps a block, below the driver's frames.
#ifdef LATE_DRIVER
#include <pthread.h>
#include <stdlib.h>

void late_work(void (*callback)(void));
void late_work(void (*callback)(void)) {
  pthread_mutex_t *const mutex = malloc(sizeof(*mutex));
  if (mutex == NULL || pthread_mutex_init(mutex, NULL) != 0) abort();
  callback();
}
#else
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int leaks;
static void *volatile kept;

static void own_callback(void) {
  void *const block = malloc(24);
  if (leaks) {
    kept = block;
  } else {
    free(block);
  }
}

static int child(const char *file) {
  void (*work)(void (*)(void));
  void *const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || cuInit(0) != CUDA_SUCCESS) return 3;
  *(void **)(&work) = dlsym(library, "late_work");
  work(&own_callback);
  return dlclose(library);
}

int main(int argc, char **argv) {
  int i;
  if (argc != 4) return 2;
  leaks = strcmp(argv[2], "leaks") == 0;
  for (i = 0; i < atoi(argv[3]); ++i) {
    int status = 1;
    const pid_t process = fork();
    if (process == 0) _exit(child(argv[1]));
    if (waitpid(process, &status, 0) != process || status != 0) return 1;
  }
  return 0;
}
#endif
