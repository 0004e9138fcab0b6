# SPDX-License-Identifier: MIT
"""NVIDIA's own libraries by their C functions: cuBLAS, cuFFT, cuSPARSE, cuRAND, cuSOLVER, nvJPEG, each handle made and destroyed;
marked_cycles.py says how. They hold the driver's functions in tables that they load with dlopen, or name libcuda.so.1 as needed."""
import ctypes
import glob
import sys
import sysconfig

import marked_cycles

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


if __name__ == "__main__":
    marked_cycles.main("NVIDIA libraries", {"cublas": handle("cublas", "cublasCreate_v2", "cublasDestroy_v2"), "cufft": fft, "curand": random,
                                            "cusparse": handle("cusparse", "cusparseCreate", "cusparseDestroy"),
                                            "cusolver": handle("cusolver", "cusolverDnCreate", "cusolverDnDestroy"),
                                            "nvjpeg": handle("nvjpeg", "nvjpegCreateSimple", "nvjpegDestroy")}, synchronize)
