// SPDX-License-Identifier: MIT
// Memory and events of other processes and other interfaces: inter-process handles, external memory and semaphores, graphics resources.
#include <fcntl.h>

#include "suites/cudart/question.h"

namespace cuaudit::cudart::sharing_questions {
namespace {

constexpr Question kQuestions[] = {
    {"ipc.memory_handle",
     [](Asker& a) {
       cudaIpcMemHandle_t handle{};
       char* const block = NewBlock(a);
       a(cudaIpcGetMemHandle(&handle, block));
       a(cudaIpcGetMemHandle(&handle, block + 16));
     }},
    {"ipc.memory_handle_into_nothing", [](Asker& a) { a(cudaIpcGetMemHandle(nullptr, NewBlock(a))); }},
    {"ipc.memory_handle_of_nothing",
     [](Asker& a) {
       cudaIpcMemHandle_t handle{};
       a.Prepare(cudaFree(nullptr));
       a(cudaIpcGetMemHandle(&handle, nullptr));
       a(cudaIpcGetMemHandle(&handle, Invented()));
     }},
    {"ipc.memory_of_other_kinds",
     [](Asker& a) {
       cudaIpcMemHandle_t handle{};
       void* block = nullptr;
       a.Prepare(cudaMallocManaged(&block, 4096, cudaMemAttachGlobal));
       a(cudaIpcGetMemHandle(&handle, block));
       a.Prepare(cudaMallocHost(&block, 4096));
       a(cudaIpcGetMemHandle(&handle, block));
       a.Prepare(cudaMallocAsync(&block, 4096, nullptr));
       a(cudaIpcGetMemHandle(&handle, block));
     }},
    {"ipc.open_own",
     [](Asker& a) {
       cudaIpcMemHandle_t handle{};
       a.Prepare(cudaIpcGetMemHandle(&handle, NewBlock(a)));
       void* opened = nullptr;
       a(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
       a(cudaIpcOpenMemHandle(&opened, handle, 77));
       a(cudaIpcOpenMemHandle(nullptr, handle, cudaIpcMemLazyEnablePeerAccess));
     }},
    {"ipc.open_invented",
     [](Asker& a) {
       const cudaIpcMemHandle_t handle{};
       void* opened = nullptr;
       a.Prepare(cudaFree(nullptr));
       a(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
       a(cudaIpcCloseMemHandle(nullptr));
       a(cudaIpcCloseMemHandle(NewBlock(a)));
     }},
    {"ipc.event",
     [](Asker& a) {
       cudaIpcEventHandle_t handle{};
       a(cudaIpcGetEventHandle(&handle, NewEvent(a, cudaEventInterprocess | cudaEventDisableTiming)));
       cudaEvent_t opened = nullptr;
       a(cudaIpcOpenEventHandle(&opened, handle));
     }},
    {"ipc.event_of_one_process",
     [](Asker& a) {
       cudaIpcEventHandle_t handle{};
       a(cudaIpcGetEventHandle(&handle, NewEvent(a)));
     }},
    {"ipc.event_handle_into_nothing",
     [](Asker& a) { a(cudaIpcGetEventHandle(nullptr, NewEvent(a, cudaEventInterprocess | cudaEventDisableTiming))); }},
    {"ipc.event_handle_of_nothing",
     [](Asker& a) {
       cudaIpcEventHandle_t handle{};
       a.Prepare(cudaFree(nullptr));
       a(cudaIpcGetEventHandle(&handle, nullptr));
     }},
    {"external.memory_bad",
     [](Asker& a) {
       cudaExternalMemory_t memory = nullptr;
       cudaExternalMemoryHandleDesc description{};
       a.Prepare(cudaFree(nullptr));
       a(cudaImportExternalMemory(&memory, nullptr));
       a(cudaImportExternalMemory(nullptr, &description));
       a(cudaImportExternalMemory(&memory, &description));
       description.type = cudaExternalMemoryHandleTypeOpaqueFd;
       description.handle.fd = -1;
       description.size = 4096;
       a(cudaImportExternalMemory(&memory, &description));
       description.handle.fd = open("/dev/null", O_RDWR);
       a(cudaImportExternalMemory(&memory, &description));
     }},
    {"external.memory_null_handle",
     [](Asker& a) {
       a.Prepare(cudaFree(nullptr));
       void* pointer = nullptr;
       const cudaExternalMemoryBufferDesc buffer{};
       a(cudaDestroyExternalMemory(nullptr));
       a(cudaExternalMemoryGetMappedBuffer(&pointer, nullptr, &buffer));
     }},
    {"external.semaphore_bad",
     [](Asker& a) {
       cudaExternalSemaphore_t semaphore = nullptr;
       cudaExternalSemaphoreHandleDesc description{};
       a.Prepare(cudaFree(nullptr));
       a(cudaImportExternalSemaphore(&semaphore, nullptr));
       a(cudaImportExternalSemaphore(nullptr, &description));
       a(cudaImportExternalSemaphore(&semaphore, &description));
       description.type = cudaExternalSemaphoreHandleTypeOpaqueFd;
       description.handle.fd = -1;
       a(cudaImportExternalSemaphore(&semaphore, &description));
       a(cudaDestroyExternalSemaphore(nullptr));
     }},
    {"external.signal_nothing",
     [](Asker& a) {
       a.Prepare(cudaFree(nullptr));
       a(cudaSignalExternalSemaphoresAsync(nullptr, nullptr, 0, nullptr));
       a(cudaWaitExternalSemaphoresAsync(nullptr, nullptr, 0, nullptr));
       a(cudaSignalExternalSemaphoresAsync(nullptr, nullptr, 1, nullptr));
     }},
    {"graphics.nothing",
     [](Asker& a) {
       a.Prepare(cudaFree(nullptr));
       a(cudaGraphicsUnregisterResource(nullptr));
       a(cudaGraphicsMapResources(0, nullptr, nullptr));
       a(cudaGraphicsUnmapResources(0, nullptr, nullptr));
     }},
    {"logs.dump",
     [](Asker& a) {
       char buffer[4096];
       std::size_t size = sizeof(buffer);
       cudaLogIterator iterator{};
       a(cudaLogsCurrent(&iterator, 0));
       a(cudaLogsDumpToMemory(&iterator, buffer, &size, 0));
       a(cudaLogsCurrent(&iterator, 77));
     }},
    {"logs.callback",
     [](Asker& a) {
       cudaLogsCallbackHandle handle = nullptr;
       a(cudaLogsRegisterCallback([](void*, cudaLogLevel, char*, std::size_t) {}, nullptr, &handle));
       a.Value(handle != nullptr);
       a(cudaLogsUnregisterCallback(handle));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::sharing_questions

namespace cuaudit::cudart {
std::span<const Question> SharingQuestions() { return sharing_questions::kQuestions; }
}  // namespace cuaudit::cudart
