# SPDX-License-Identifier: MIT
"""cuda.core, NVIDIA's own Python objects over the driver: streams, events, buffers, programs, graphs; marked_cycles.py says how."""
import marked_cycles

try:
    import cuda.core
    try:
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    except ImportError:
        from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch
except ImportError as missing:
    marked_cycles.leave(str(missing))

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
    global count
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


if __name__ == "__main__":
    marked_cycles.main(f"cuda.core {cuda.core.__version__}", {"stream": stream, "event": event, "buffer": buffer, "program": program, "graph": graph},
                       device.sync)
