#pragma once
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/state_dict.hpp>

// The arrays of tests/goldens/make_numpy.py.
namespace braid::test {

inline StateDict numpy_arrays() {
  const Tensor grid = arange(6, {.dtype = DType::float64}).reshape({2, 3});
  const auto quarter = [&](DType dtype) { return (grid / 4).to(dtype); };
  StateDict dict;
  dict.set("f4", quarter(DType::float32));
  dict.set("f8", quarter(DType::float64));
  dict.set("f2", quarter(DType::float16));
  dict.set("i4", (grid - 3).to(DType::int32));
  dict.set("i8", (grid - 3).to(DType::int64));
  dict.set("u1", grid.to(DType::uint8));
  dict.set("b1", tensor({0, 1, 0, 1, 0, 1}).reshape({2, 3}).to(DType::bool_));
  dict.set("fortran", arange(24, {.dtype = DType::float32}).reshape({2, 3, 4}));
  dict.set("scalar", full({}, 2.5, {.dtype = DType::float64}));
  dict.set("one", full({1}, 7, {.dtype = DType::int64}));
  dict.set("empty", zeros({2, 0, 3}));
  return dict;
}

/// Returns whether dtype, shape and bits are the same.
inline bool identical(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.numel() == 0 ||
         std::memcmp(x.impl()->data(), y.impl()->data(),
                     static_cast<std::size_t>(x.numel()) * size_of(x.dtype())) == 0;
}

}  // namespace braid::test
