#include <braid/core/kernel_args/elementwise.hpp>
#include <braid/core/kernel_args/gemm.hpp>
#include <braid/core/kernel_args/reduce.hpp>
#include <braid/core/kernel_args/softmax.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"
#include "cuda_kernels/probe.hpp"

// Sizes beyond what 32-bit indices and one grid hold.
using namespace kernel_test;

namespace {

void check_offsets(const Loop& loop) {
  std::vector<std::int64_t> at{0, loop.n - 1, loop.n / 2, loop.n / 3, loop.n - loop.n / 7 - 1};
  for (int d = loop.rank - 1; d >= 0; --d)
    for (std::int64_t near : {loop.size[d] - 1, loop.size[d], loop.size[d] + 1})
      if (near < loop.n) at.push_back(near), at.push_back(loop.n - 1 - near);
  for (std::int64_t power = 1; power > 0 && power < loop.n; power *= 2)
    at.push_back(power), at.push_back(power - 1);
  std::vector<std::int64_t> out(2 * at.size());
  const IndexTwin positions(at);
  DeviceBytes result(out.data(), out.size() * sizeof(std::int64_t), 0);
  probe_offsets(loop, positions.data(), static_cast<std::int64_t>(at.size()),
                static_cast<std::int64_t*>(result.data()), gpu_stream());
  result.fetch(out.data());
  std::int64_t wrong = 0;
  for (std::size_t k = 0; k < at.size(); ++k)
    wrong += out[2 * k] != offset(loop, 0, at[k]) || out[2 * k + 1] != offset(loop, 1, at[k]);
  INFO("n " << loop.n << " rank " << loop.rank);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("cuda indexing: offsets are exact below and above 2^31 elements, for any divisor",
          "[cuda_kernels][indexing]") {
  NEEDS_GPU;
  for (const std::int64_t size : {1, 2, 3, 5, 7, 10, 31, 641, 65535, 65537, 1 << 20, 1000003}) {
    check_offsets(strided({7, size}, {{size, 1}, {1, 7}}));
    check_offsets(strided({(std::int64_t{1} << 31) / size - 1, size}, {{size, 1}, {1, -3}}));
    check_offsets(strided({(std::int64_t{1} << 31) / size + 5, size}, {{size, 1}, {1, 0}}));
    check_offsets(strided({(std::int64_t{1} << 40) / size + 5, size}, {{size, 1}, {2, 1}}));
  }
  check_offsets(strided({(std::int64_t{1} << 31) - 1}, {{1}, {2}}));
  check_offsets(strided({std::int64_t{1} << 40}, {{1}, {3}}));
  check_offsets(strided({1 << 10, 3, 1 << 10, 5, 1 << 10, 2},
                        {{1, 2, 3, 4, 5, 6}, {6000, 500, 40, 30, 20, 10}}));
}

TEST_CASE("cuda indexing: more work than one grid holds", "[cuda_kernels][indexing]") {
  NEEDS_GPU;
  constexpr std::int64_t blocks = 8192, threads = 256;
  {
    const std::int64_t n = blocks * threads + 1000;  // strided: an element a thread
    Buffer out(DType::uint8, n), expected(DType::uint8, n), x(DType::uint8, 2);
    x.put(0, 3), x.put(1, 4);
    Twin gx(x), gout(out);
    gpu().copy(braid::CopyArgs{.to = DType::uint8,
                               .from = DType::uint8,
                               .out = gout.data(),
                               .x = gx.data(),
                               .loop = strided({n / 2, 2}, {{2, 1}, {0, 1}})},
               gpu_stream());
    gout.fetch();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i) wrong += out[i] != 3 + static_cast<double>(i % 2);
    CHECK(wrong == 0);
  }
  {
    const std::int64_t rows = blocks * 8 + 100, n = 2;  // a row a warp
    Buffer x(DType::float32, rows * n), y(DType::float32, rows * n);
    for (std::int64_t i = 0; i < rows * n; ++i) x.put(i, 0);
    Twin gx(x), gy(y);
    gpu().softmax(braid::SoftmaxArgs{.dtype = DType::float32,
                                     .log = false,
                                     .x = gx.data(),
                                     .y = gy.data(),
                                     .rows = rows,
                                     .n = n},
                  gpu_stream());
    gy.fetch();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < rows * n; ++i) wrong += y[i] != 0.5;
    CHECK(wrong == 0);
  }
  {
    // a tile a block; nothing along k, so each is the bias alone
    const std::int64_t batch = blocks + 100;
    Buffer bias(DType::float32, 1), c(DType::float32, batch);
    bias.put(0, 2);
    for (std::int64_t i = 0; i < batch; ++i) c.put(i, -1);
    Twin gbias(bias), gc(c);
    braid::GemmArgs args{};
    args.dtype = DType::float32;
    args.m = args.n = args.lda = args.ldb = args.ldc = args.batch_c = 1;
    args.batch = batch;
    args.a = args.b = args.bias = gbias.data(), args.c = gc.data();
    gpu().gemm(args, gpu_stream());
    gc.fetch();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < batch; ++i) wrong += c[i] != 2;
    CHECK(wrong == 0);
  }
  {
    const std::int64_t rows = blocks + 3, n = 513;  // a row a block; the same 513 numbers for each
    Buffer x(DType::int32, n), out(DType::int64, rows);
    for (std::int64_t i = 0; i < n; ++i) x.put(i, static_cast<double>(i));
    Twin gx(x), gout(out);
    const Loop keep = strided({rows}, {{1}, {0}}), over = strided({n}, {{0}, {1}});
    gpu().reduce(braid::ReduceArgs{.op = braid::ReduceOp::sum,
                                   .dtype = DType::int32,
                                   .out = gout.data(),
                                   .x = gx.data(),
                                   .scale = 1,
                                   .keep = keep,
                                   .over = over},
                 gpu_stream());
    gout.fetch();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < rows; ++i) wrong += out[i] != static_cast<double>(n * (n - 1) / 2);
    CHECK(wrong == 0);
  }
  {
    const std::int64_t batch = blocks + 100, side = 8;  // a transposed tile a block
    Buffer x(DType::int32, batch * side * side), out(DType::int32, batch * side * side);
    for (std::int64_t i = 0; i < batch * side * side; ++i) x.put(i, static_cast<double>(i));
    Twin gx(x), gout(out);
    const Loop turned =
        strided({batch, side, side}, {{side * side, side, 1}, {side * side, 1, side}});
    gpu().copy(braid::CopyArgs{.to = DType::int32,
                               .from = DType::int32,
                               .out = gout.data(),
                               .x = gx.data(),
                               .loop = turned},
               gpu_stream());
    gout.fetch();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < batch * side * side; ++i)
      wrong += out[i] != static_cast<double>(i / (side * side) * side * side + i % side * side +
                                             i / side % side);
    CHECK(wrong == 0);
  }
  {
    // 32 columns a block: element j of output e is x[e + 2 j]
    const std::int64_t columns = 32 * blocks + 100, n = 17;
    Buffer x(DType::int32, columns + 2 * n), out(DType::int64, columns);
    for (std::int64_t i = 0; i < columns + 2 * n; ++i) x.put(i, static_cast<double>(i));
    Twin gx(x), gout(out);
    const Loop keep = strided({columns}, {{1}, {1}}), over = strided({n}, {{0}, {2}});
    gpu().reduce(braid::ReduceArgs{.op = braid::ReduceOp::sum,
                                   .dtype = DType::int32,
                                   .out = gout.data(),
                                   .x = gx.data(),
                                   .scale = 1,
                                   .keep = keep,
                                   .over = over},
                 gpu_stream());
    gout.fetch();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < columns; ++i)
      wrong += out[i] != static_cast<double>(n * i + n * (n - 1));
    CHECK(wrong == 0);
  }
}
