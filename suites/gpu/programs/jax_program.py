# SPDX-License-Identifier: MIT
"""JAX: a jitted function on the GPU. Prints what it computed."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp


@jax.jit
def work(x):
    return jnp.tanh(x @ x.T).sum()


x = jnp.arange(64 * 64, dtype=jnp.float32).reshape(64, 64) / 4096
print(f"{jax.devices()[0].platform} {float(work(x)):.3f}")
