// SPDX-License-Identifier: MIT
// late_driver.c: a library named as the driver's own are. It keeps a block and a mutex for itself, and calls its caller back meanwhile.
#include <pthread.h>
#include <stdlib.h>

void late_work(void (*callback)(void));
void late_work(void (*callback)(void)) {
  pthread_mutex_t *const mutex = malloc(sizeof(*mutex));
  if (mutex == NULL || pthread_mutex_init(mutex, NULL) != 0) abort();
  callback();
}
