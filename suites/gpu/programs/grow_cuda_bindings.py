# SPDX-License-Identifier: MIT
"""cuda.bindings, the driver API in Python: the objects of lifecycles one to one; marked_cycles.py says how."""
import marked_cycles

try:
    import cuda.bindings
    from cuda.bindings import driver
except ImportError as missing:
    marked_cycles.leave(str(missing))


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


if __name__ == "__main__":
    marked_cycles.main(f"cuda.bindings {cuda.bindings.__version__}", {"stream": stream, "event": event, "memory": memory, "graph": graph, "pool": pool,
                                                                      "lost_stream": lost_stream}, lambda: ask(driver.cuCtxSynchronize()))
