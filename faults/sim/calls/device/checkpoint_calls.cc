// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include <signal.h>

#include "faults/sim/entry/entry.h"

// Arguments are checked and nothing is done: a locked process's calls would block, and its memory would move to the host.
#ifdef CUAUDIT_HAS_CheckpointProcessGetState
namespace cuaudit::sim {
namespace {

CUresult OfProcess(int process) { return process <= 0 || kill(process, 0) != 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_NOT_SUPPORTED; }

CUresult OfProcess(int process, const void* out) { return out == nullptr ? CUDA_ERROR_INVALID_VALUE : OfProcess(process); }

}  // namespace

CUresult api::CheckpointProcessGetState(Call&, int process, CUprocessState* state) { return OfProcess(process, state); }

CUresult api::CheckpointProcessGetRestoreThreadId(Call&, int process, int* thread) { return OfProcess(process, thread); }

CUresult api::CheckpointProcessLock(Call&, int process, CUcheckpointLockArgs*) { return OfProcess(process); }

CUresult api::CheckpointProcessCheckpoint(Call&, int process, CUcheckpointCheckpointArgs*) { return OfProcess(process); }

CUresult api::CheckpointProcessRestore(Call&, int process, CUcheckpointRestoreArgs*) { return OfProcess(process); }

CUresult api::CheckpointProcessUnlock(Call&, int process, CUcheckpointUnlockArgs*) { return OfProcess(process); }

}  // namespace cuaudit::sim
#endif
