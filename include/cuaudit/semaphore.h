/* SPDX-License-Identifier: MIT
 * semaphore.h: a semaphore as a graphics API would export it, for cuaudit's simulated driver. Header-only C and C++, nothing to link.
 *
 * int outside = cuaudit_semaphore_create(0);
 * desc.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
 * desc.handle.fd = dup(outside);
 * cuImportExternalSemaphore(&semaphore, &desc);
 * cuaudit_semaphore_signal(outside, 3);
 *
 * The descriptor also works as CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD. Its value is the value of a timeline semaphore, or 0 or 1
 * for a binary one. A genuine driver does not accept such a descriptor and answers CUDA_ERROR_UNKNOWN. The caller owns the descriptor
 * until cuImportExternalSemaphore takes it; keep a dup() to signal from outside. Any thread and any process that has the descriptor may
 * use it. The functions return -1 and set errno when they fail.
 */
#ifndef CUAUDIT_SEMAPHORE_H
#define CUAUDIT_SEMAPHORE_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CUAUDIT_SEMAPHORE_MAGIC UINT64_C(0x31306d6573647563)

/* Content of the file behind the descriptor. */
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
/* Signals the semaphore, which the graphics API would do on its own. Returns 0 or -1. */
static inline int cuaudit_semaphore_signal(int fd, uint64_t value) {
  return pwrite(fd, &value, sizeof(value), CUAUDIT_SEMAPHORE_VALUE) == CUAUDIT_SEMAPHORE_VALUE ? 0 : -1;
}
static inline int cuaudit_semaphore_value(int fd, uint64_t* value) {
  return pread(fd, value, sizeof(*value), CUAUDIT_SEMAPHORE_VALUE) == CUAUDIT_SEMAPHORE_VALUE ? 0 : -1;
}

#endif
