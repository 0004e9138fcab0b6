// SPDX-License-Identifier: MIT
// host_kernels.cc: the programs' kernels for the simulated driver, in a library beside them: `cuaudit ... --kernels=FILE`.
#include <cuaudit/kernel.h>

namespace {

using cuaudit::Device;
using cuaudit::Launch;

void Add(Launch launch, Device<const float, 3> a, Device<const float, 3> b, Device<float, 3> c, int count) {
  const float* const left = a.Read(launch, static_cast<std::uint64_t>(count));
  const float* const right = b.Read(launch, static_cast<std::uint64_t>(count));
  float* const out = c.Write(launch, static_cast<std::uint64_t>(count));
  if (left == nullptr || right == nullptr || out == nullptr) return;
  for (int i = 0; i < count; ++i) out[i] = left[i] + right[i];
}

void Scale(Launch launch, Device<float, 2> values, float factor, int count) {
  float* const out = values.Write(launch, static_cast<std::uint64_t>(count));
  if (out == nullptr) return;
  for (int i = 0; i < count; ++i) out[i] *= factor;
}

void Sum(Launch launch, Device<const float, 3> left, Device<const float, 3> right, Device<float, 3> out, int count) {
  const float* const a = left.Read(launch, static_cast<std::uint64_t>(count));
  const float* const b = right.Read(launch, static_cast<std::uint64_t>(count));
  float* const to = out.Write(launch, static_cast<std::uint64_t>(count));
  if (a == nullptr || b == nullptr || to == nullptr) return;
  for (int i = 0; i < count; ++i) to[i] += a[i] + b[i];
}

void Accumulate(Launch launch, Device<const int, 2> in, Device<int> total, int count) {
  const int* const from = in.Read(launch, static_cast<std::uint64_t>(count));
  int* const to = total.Write(launch, 1);
  if (from == nullptr || to == nullptr) return;
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += from[i] & 0xff;
  *to += sum;
}

cuaudit::HostKernel<Add> add("_Z3AddPKfS0_Pfi");
cuaudit::HostKernel<Scale> scale("_Z5ScalePffi");
cuaudit::HostKernel<Sum> sum("_Z3SumPKfS0_Pfi");
cuaudit::HostKernel<Accumulate> accumulate("_Z10AccumulatePKiPii");

}  // namespace
