# SPDX-License-Identifier: MIT
"""JAX: arrays and compiled functions, made, used and destroyed; marked_cycles.py says how."""
import os

import marked_cycles

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
try:
    import jax
    import jax.numpy as jnp
except ImportError as missing:
    marked_cycles.leave(str(missing))


def array():
    one = jax.device_put(jnp.ones((1024, 1024), dtype=jnp.float32)).block_until_ready()
    one.delete()


count = 0


def module():
    """A function that is compiled anew each time and dropped from all caches."""
    global count
    count += 1
    constant = count
    assert float(jax.jit(lambda x: x * constant + 1)(jnp.ones(())).block_until_ready()) == constant + 1
    jax.clear_caches()


def graph():
    """Enough small operations in one compiled function for XLA to make a command buffer of them."""
    def steps(x):
        for i in range(8):
            x = jnp.sin(x @ x) + i
        return x.sum()
    jax.jit(steps)(jnp.ones((32, 32), dtype=jnp.float32)).block_until_ready()
    jax.clear_caches()


if __name__ == "__main__":
    if jax.devices()[0].platform != "gpu":
        marked_cycles.leave(f"jax {jax.__version__} has no GPU back end here")
    marked_cycles.main(f"jax {jax.__version__}", {"array": array, "module": module, "graph": graph}, lambda: jnp.zeros(()).block_until_ready())
