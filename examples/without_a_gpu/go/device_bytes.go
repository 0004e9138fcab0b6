// SPDX-License-Identifier: MIT

// Package devicebytes moves bytes to a device and back, by a CUDA driver that it loads itself. It knows nothing of cuaudit.
package devicebytes

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>

static void *find(const char *name) {
  static void *library;
  if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW);
  return library == NULL ? NULL : dlsym(library, name);
}
#define CALL(name, types, ...)                     \
  int(*call) types = (int(*) types)find(name);     \
  return call == NULL ? 999 : call(__VA_ARGS__)

static int init(void) { CALL("cuInit", (unsigned), 0); }
static int device_name(char *name, int length) { CALL("cuDeviceGetName", (char *, int, int), name, length, 0); }
static int retain(void **context) { CALL("cuDevicePrimaryCtxRetain", (void **, int), context, 0); }
static int release(void) { CALL("cuDevicePrimaryCtxRelease_v2", (int), 0); }
static int set_current(void *context) { CALL("cuCtxSetCurrent", (void *), context); }
static int allocate(unsigned long long *memory, size_t bytes) { CALL("cuMemAlloc_v2", (unsigned long long *, size_t), memory, bytes); }
static int release_memory(unsigned long long memory) { CALL("cuMemFree_v2", (unsigned long long), memory); }
static int send(unsigned long long to, const void *from, size_t bytes) {
  CALL("cuMemcpyHtoD_v2", (unsigned long long, const void *, size_t), to, from, bytes);
}
static int fetch(void *to, unsigned long long from, size_t bytes) {
  CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t), to, from, bytes);
}
*/
import "C"

import (
	"fmt"
	"unsafe"
)

func check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: CUDA error %d", call, code)
}

// Open makes the primary context of the first device current on this thread.
func Open() error {
	if err := check("cuInit", C.init()); err != nil {
		return err
	}
	var context unsafe.Pointer
	if err := check("cuDevicePrimaryCtxRetain", C.retain(&context)); err != nil {
		return err
	}
	return check("cuCtxSetCurrent", C.set_current(context))
}

// Close gives the context back.
func Close() error { return check("cuDevicePrimaryCtxRelease", C.release()) }

// Name is the name of the first device.
func Name() (string, error) {
	var name [128]C.char
	err := check("cuDeviceGetName", C.device_name(&name[0], C.int(len(name))))
	return C.GoString(&name[0]), err
}

// ThereAndBack sends the bytes, at least one, to the device and fetches them again.
func ThereAndBack(sent []byte) (got []byte, err error) {
	var memory C.ulonglong
	bytes := C.size_t(len(sent))
	if err := check("cuMemAlloc", C.allocate(&memory, bytes)); err != nil {
		return nil, err
	}
	defer func() {
		if freed := check("cuMemFree", C.release_memory(memory)); err == nil {
			err = freed
		}
	}()
	if err := check("cuMemcpyHtoD", C.send(memory, unsafe.Pointer(&sent[0]), bytes)); err != nil {
		return nil, err
	}
	got = make([]byte, len(sent))
	return got, check("cuMemcpyDtoH", C.fetch(unsafe.Pointer(&got[0]), memory, bytes))
}
