// SPDX-License-Identifier: MIT

package devicebytes

import (
	"runtime"
	"strings"
	"testing"
)

func TestBytesComeBackFromTheSimulatedDevice(t *testing.T) {
	runtime.LockOSThread() // the current context is a thread's
	defer runtime.UnlockOSThread()
	if err := Open(); err != nil {
		t.Fatal(err)
	}
	defer Close()
	if name, err := Name(); err != nil || !strings.HasPrefix(name, "cuaudit simulated") {
		t.Fatalf("another device: %q, %v", name, err)
	}
	got, err := ThereAndBack([]byte("there and back"))
	if err != nil || string(got) != "there and back" {
		t.Fatalf("%q, %v", got, err)
	}
}
