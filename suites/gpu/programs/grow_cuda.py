# SPDX-License-Identifier: MIT
"""What NVIDIA's own libraries keep of the objects of lifecycles: grow_cuda.py LIBRARY KIND [CYCLES], one function for each library;
marked_cycles.py says how.
"""
import ctypes
import glob
import os
import sys
import sysconfig

from marked_cycles import leave, main


def driver():
    """The driver by ctypes, no framework: what must stay silent, and one planted loss. Runs on the simulated driver too."""
    def ask(code):
        if code != 0:
            raise RuntimeError(f"CUresult {code}")

    if sys.argv[1:] != ["--list"]:
        driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        ask(driver.cuInit(0))
        ask(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        ask(driver.cuCtxSetCurrent(context))

    def make_stream():
        one = ctypes.c_void_p()
        ask(driver.cuStreamCreate(ctypes.byref(one), 0))
        return one

    def stream():
        ask(driver.cuStreamDestroy_v2(make_stream()))

    def graph():
        one = ctypes.c_void_p()
        ask(driver.cuGraphCreate(ctypes.byref(one), 0))
        ask(driver.cuGraphDestroy(one))

    main("driver", {"stream": stream, "graph": graph, "lost_stream": make_stream}, lambda: ask(driver.cuCtxSynchronize()))


def cuda_bindings():
    """cuda.bindings, the driver API in Python: the objects of lifecycles one to one."""
    try:
        import cuda.bindings
        from cuda.bindings import driver
    except ImportError as missing:
        leave(str(missing))

    def ask(answer):
        code, *rest = answer
        if code != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(str(code))
        return rest[0] if len(rest) == 1 else rest

    ask(driver.cuInit(0))
    ask(driver.cuCtxSetCurrent(ask(driver.cuDevicePrimaryCtxRetain(0))))

    def stream():
        one = ask(driver.cuStreamCreate(0))
        ask(driver.cuStreamSynchronize(one))
        ask(driver.cuStreamDestroy(one))

    def event():
        one = ask(driver.cuEventCreate(0))
        ask(driver.cuEventRecord(one, 0))
        ask(driver.cuEventSynchronize(one))
        ask(driver.cuEventDestroy(one))

    def memory():
        one = ask(driver.cuMemAlloc(1 << 20))
        ask(driver.cuMemsetD8(one, 1, 1 << 20))
        ask(driver.cuMemFree(one))

    def graph():
        whole = ask(driver.cuGraphCreate(0))
        ask(driver.cuGraphAddEmptyNode(whole, [], 0))
        ready = ask(driver.cuGraphInstantiate(whole, 0))
        ask(driver.cuGraphLaunch(ready, 0))
        ask(driver.cuStreamSynchronize(0))
        ask(driver.cuGraphExecDestroy(ready))
        ask(driver.cuGraphDestroy(whole))

    def pool():
        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        own = ask(driver.cuMemPoolCreate(properties))
        inside = ask(driver.cuMemAllocFromPoolAsync(1 << 20, own, 0))
        ask(driver.cuMemFreeAsync(inside, 0))
        ask(driver.cuStreamSynchronize(0))
        ask(driver.cuMemPoolDestroy(own))

    def lost_stream():
        """The planted one: what must be found, so that the silence of the others means something."""
        ask(driver.cuStreamCreate(0))

    main(f"cuda.bindings {cuda.bindings.__version__}", {"stream": stream, "event": event, "memory": memory, "graph": graph, "pool": pool,
                                                                      "lost_stream": lost_stream}, lambda: ask(driver.cuCtxSynchronize()))


def cuda_core():
    """cuda.core, NVIDIA's own Python objects over the driver: streams, events, buffers, programs, graphs."""
    try:
        import cuda.core
        try:
            from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
        except ImportError:
            from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch
    except ImportError as missing:
        leave(str(missing))

    device = Device()
    device.set_current()

    def stream():
        one = device.create_stream()
        one.sync()
        one.close()

    def event():
        one = device.create_event() if hasattr(device, "create_event") else None
        if one is None:
            raise NotImplementedError("Device.create_event")
        device.default_stream.record(one)
        one.sync()
        one.close()

    def buffer():
        one = device.create_stream()
        memory = device.allocate(1 << 20, stream=one)
        memory.close(one)
        one.sync()
        one.close()

    count = 0

    def program():
        nonlocal count
        count += 1
        major, minor = device.compute_capability
        source = f'extern "C" __global__ void step(int* x) {{ if (x) x[0] += {count}; }}'
        compiled = Program(source, code_type="c++", options=ProgramOptions(arch=f"sm_{major}{minor}"))
        kernel = compiled.compile("cubin").get_kernel("step")
        one = device.create_stream()
        launch(one, LaunchConfig(grid=1, block=1), kernel, 0)
        one.sync()
        one.close()
        compiled.close()

    def graph():
        one = device.create_stream()
        builder = one.create_graph_builder()
        builder.begin_building()
        builder.end_building()
        whole = builder.complete()
        whole.launch(one)
        one.sync()
        whole.close()
        builder.close()
        one.close()

    main(f"cuda.core {cuda.core.__version__}", {"stream": stream, "event": event, "buffer": buffer, "program": program, "graph": graph},
                       device.sync)


def linked():
    """A library that was linked with the driver: PyTorch's libcaffe2_nvrtc.so names libcuda.so.1 as needed and hands out a table of driver functions
    that the loader bound when it came into the process. Modules, made, used and destroyed through that table."""
    try:
        import torch
    except ImportError as missing:
        leave(str(missing))

    PTX = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n"

    class Where(ctypes.Structure):
        _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]

    def table():
        """Name -> address of the driver functions in it, as dladdr knows them."""
        library = ctypes.CDLL(os.path.join(torch.__path__[0], "lib", "libcaffe2_nvrtc.so"), ctypes.RTLD_GLOBAL)
        load = next((getattr(library, name) for name in ("load_nvrtc", "_ZN2at4cuda10load_nvrtcEv") if hasattr(library, name)), None)
        if load is None:
            raise NotImplementedError("load_nvrtc of libcaffe2_nvrtc.so")
        load.restype = ctypes.POINTER(ctypes.c_void_p)
        entries, functions, where = load(), {}, Where()
        dladdr = ctypes.CDLL(None).dladdr
        for i in range(64):
            if entries[i] is None or dladdr(ctypes.c_void_p(entries[i]), ctypes.byref(where)) == 0 or where.name is None:
                break
            functions[where.name.decode()] = entries[i]
        return functions

    functions = {}

    def call(name, *arguments):
        functions.update(functions or table())
        if name not in functions:
            raise NotImplementedError(f"{name} in libcaffe2_nvrtc.so, which has {sorted(functions)}")
        status = ctypes.CFUNCTYPE(ctypes.c_int)(functions[name])(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: {status}")

    def module():
        one, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(one), PTX)
        call("cuModuleGetFunction", ctypes.byref(kernel), one, b"nothing")
        call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
        torch.cuda.synchronize()
        call("cuModuleUnload", one)

    def lost_module():
        call("cuModuleLoadData", ctypes.byref(ctypes.c_void_p()), PTX)

    if sys.argv[1:] != ["--list"]:
        torch.zeros(1, device="cuda")  # a current context
    main(f"libcaffe2_nvrtc.so of torch {torch.__version__}", {"module": module, "lost_module": lost_module}, torch.cuda.synchronize)


def nvidia_libraries():
    """NVIDIA's own libraries by their C functions: cuBLAS, cuFFT, cuSPARSE, cuRAND, cuSOLVER, nvJPEG, each handle made and destroyed. They hold the driver's functions in tables that they load with dlopen, or name libcuda.so.1 as needed."""
    PLACES = ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"] + [
        f"{place}/nvidia/*/lib" for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path} if place]

    def load(name):
        for place in PLACES:
            for file in sorted(glob.glob(f"{place}/lib{name}.so.*"), reverse=True):
                try:
                    return ctypes.CDLL(file, ctypes.RTLD_GLOBAL)
                except OSError:
                    continue
        raise NotImplementedError(f"lib{name}")

    def ask(status):
        if status != 0:
            raise RuntimeError(f"status {status}")

    def handle(name, create, destroy):
        def cycle():
            library, one = load(name), ctypes.c_void_p()
            ask(getattr(library, create)(ctypes.byref(one)))
            ask(getattr(library, destroy)(one))
        return cycle

    def fft():
        library, plan = load("cufft"), ctypes.c_int()
        ask(library.cufftPlan1d(ctypes.byref(plan), 4096, 0x29, 16))  # complex to complex
        ask(library.cufftDestroy(plan))

    def random():
        library, one = load("curand"), ctypes.c_void_p()
        ask(library.curandCreateGenerator(ctypes.byref(one), 100))
        ask(library.curandDestroyGenerator(one))

    def synchronize():
        runtime = load("cudart")
        ask(runtime.cudaDeviceSynchronize())

    main("NVIDIA libraries", {"cublas": handle("cublas", "cublasCreate_v2", "cublasDestroy_v2"), "cufft": fft, "curand": random,
                                            "cusparse": handle("cusparse", "cusparseCreate", "cusparseDestroy"),
                                            "cusolver": handle("cusolver", "cusolverDnCreate", "cusolverDnDestroy"),
                                            "nvjpeg": handle("nvjpeg", "nvjpegCreateSimple", "nvjpegDestroy")}, synchronize)


if __name__ == "__main__":
    {library.__name__: library for library in (driver, cuda_bindings, cuda_core, linked, nvidia_libraries)}[sys.argv.pop(1)]()
