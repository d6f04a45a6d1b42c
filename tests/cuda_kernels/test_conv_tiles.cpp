// The kernels that 16-bit convolutions run on tensor cores. Their results are tested by
// tests/kernels/test_conv.cpp.
#if defined(BRAID_CUDA_SIMT)
#include <braid/core/internal/kernel_args/conv.hpp>

#include "kernels/kernel_support.hpp"
#include "simt/runtime/control.hpp"

using namespace kernel_test;
using braid::ConvShape;

TEST_CASE("cuda conv: each kernel has a large, a small and an unaligned tile",
          "[cuda_kernels][conv]") {
  NEEDS_DEVICE;
  const auto names = [](const ConvShape& s, std::int64_t shift) {
    Buffer x(DType::bfloat16, s.n * s.in * s.in_size[0] * s.in_size[1], shift),
        w(DType::bfloat16, s.out * s.in * s.kernel[0] * s.kernel[1]),
        y(DType::bfloat16, s.n * s.out * s.out_size[0] * s.out_size[1], shift);
    braid::simt::clear_launch_log();
    kernels().conv({x.dtype(), x.data(), w.data(), nullptr, y.data(), s}, stream());
    kernels().conv_backward_data({x.dtype(), y.data(), w.data(), nullptr, x.data(), s}, stream());
    kernels().conv_backward_weight({x.dtype(), x.data(), y.data(), w.data(), nullptr, s}, stream());
    stream().synchronize();
    std::string list;
    for (const braid::simt::LaunchRecord& launch : braid::simt::launch_log())
      for (const char* kernel : {"conv_forward", "conv_backward_data", "conv_backward_weight"})
        if (launch.kernel.find(std::string(kernel) + "_mma") != std::string::npos)
          list += std::string(list.empty() ? "" : ", ") + kernel +
                  (launch.kernel.find("MmaTile<128") != std::string::npos ? " 128"
                   : launch.kernel.find("true") != std::string::npos      ? " 64"
                                                                          : " any");
    return list;
  };
  const auto shape = [](std::int64_t in, std::int64_t out, std::int64_t side, std::int64_t kernel) {
    return ConvShape{1,
                     in,
                     out,
                     1,
                     {side, side},
                     {side - kernel + 1, side - kernel + 1},
                     {kernel, kernel},
                     {1, 1},
                     {0, 0},
                     {1, 1}};
  };
  CHECK(names(shape(8, 264, 23, 1), 0) ==
        "conv_forward 128, conv_backward_data 64, conv_backward_weight 64");
  CHECK(names(shape(264, 8, 23, 1), 0) ==
        "conv_forward 64, conv_backward_data 128, conv_backward_weight 64");
  CHECK(names(shape(64, 264, 5, 3), 0) ==
        "conv_forward 64, conv_backward_data 64, conv_backward_weight 128");
  CHECK(names(shape(12, 16, 5, 3), 0) ==
        "conv_forward any, conv_backward_data any, conv_backward_weight any");
  CHECK(names(shape(264, 9, 23, 1), 0) ==
        "conv_forward 64, conv_backward_data any, conv_backward_weight any");
  CHECK(names(shape(8, 264, 23, 1), 1) ==
        "conv_forward any, conv_backward_data any, conv_backward_weight any");
}

TEST_CASE("cuda conv: dy may begin where x begins", "[cuda_kernels][conv]") {
  NEEDS_DEVICE;
  // the rows of dy, 8 bytes long, are no multiple of 16 bytes as those of x are
  const ConvShape s{4, 8, 4, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}};
  Buffer x(DType::float16, 32), dw(DType::float16, 32);
  for (std::int64_t i = 0; i < x.size(); ++i) x.put(i, static_cast<double>(i % 7 - 3));
  kernels().conv_backward_weight({x.dtype(), x.data(), x.data(), dw.data(), nullptr, s}, stream());
  stream().synchronize();
  for (std::int64_t out = 0; out < 4; ++out)
    for (std::int64_t in = 0; in < 8; ++in) {
      double sum = 0;
      for (std::int64_t n = 0; n < 4; ++n) sum += x[n * 4 + out] * x[n * 8 + in];
      CHECK(dw[out * 8 + in] == sum);
    }
}
#endif
