/* SPDX-License-Identifier: MIT
 * semaphore.h: a semaphore as another interface would export it, for cuaudit's simulated driver. Header-only C and C++, nothing to link.
 *
 *   Owns      nothing. The descriptor is the caller's until cuImportExternalSemaphore takes it; keep a dup() to signal from outside.
 *   Threads   any thread, any process that has the descriptor.
 *   Units     a timeline's value; 0 or 1 of a binary semaphore.
 *   Errors    -1 and errno. A genuine driver takes no such descriptor: it answers CUDA_ERROR_UNKNOWN.
 *   Faults    makes no driver calls.
 *   Source    ours. It stands where a graphics API would export a semaphore (OPAQUE_FD, TIMELINE_SEMAPHORE_FD).
 *
 * int outside = cuaudit_semaphore_create(0);
 * desc.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
 * desc.handle.fd = dup(outside);
 * cuImportExternalSemaphore(&semaphore, &desc);
 * cuaudit_semaphore_signal(outside, 3);
 */
#ifndef CUAUDIT_SEMAPHORE_H
#define CUAUDIT_SEMAPHORE_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CUAUDIT_SEMAPHORE_MAGIC UINT64_C(0x31306d6573647563)

/* The file: the magic number, then the value. */
typedef struct cuaudit_semaphore_file {
  uint64_t magic;
  uint64_t value;
} cuaudit_semaphore_file;

enum { CUAUDIT_SEMAPHORE_BYTES = sizeof(cuaudit_semaphore_file), CUAUDIT_SEMAPHORE_VALUE = sizeof(uint64_t) };

static inline int cuaudit_semaphore_create(uint64_t value) {
  const uint64_t file[2] = {CUAUDIT_SEMAPHORE_MAGIC, value};
  const long made = syscall(SYS_memfd_create, "cuaudit_semaphore", 1U); /* MFD_CLOEXEC */
#ifdef __cplusplus
  const int fd = static_cast<int>(made);
#else
  const int fd = (int)made;
#endif
  if (fd < 0 || pwrite(fd, file, sizeof(file), 0) == CUAUDIT_SEMAPHORE_BYTES) return fd;
  close(fd);
  return -1;
}
/* What the other interface does on its own. 0 or -1. */
static inline int cuaudit_semaphore_signal(int fd, uint64_t value) {
  return pwrite(fd, &value, sizeof(value), CUAUDIT_SEMAPHORE_VALUE) == CUAUDIT_SEMAPHORE_VALUE ? 0 : -1;
}
static inline int cuaudit_semaphore_value(int fd, uint64_t* value) {
  return pread(fd, value, sizeof(*value), CUAUDIT_SEMAPHORE_VALUE) == CUAUDIT_SEMAPHORE_VALUE ? 0 : -1;
}

#endif
