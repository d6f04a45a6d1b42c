#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/internal/kernel_args/index.hpp>
#include <braid/core/internal/kernel_args/reduce.hpp>
#include <braid/core/internal/kernel_args/softmax.hpp>

#include "cuda_kernels/probe.hpp"
#include "kernels/gemm_cases.hpp"
#include "support/on_device.hpp"

// Tests sizes beyond the range of 32-bit indices and of one grid.
using namespace kernel_test;

namespace {

void check_offsets(const Loop& loop) {
  std::vector<std::int64_t> at{0, loop.n - 1, loop.n / 2, loop.n / 3, loop.n - loop.n / 7 - 1};
  for (int d = loop.rank - 1; d >= 0; --d)
    for (std::int64_t near : {loop.size[d] - 1, loop.size[d], loop.size[d] + 1})
      if (near < loop.n) at.push_back(near), at.push_back(loop.n - 1 - near);
  for (std::int64_t power = 1; power > 0 && power < loop.n; power *= 2)
    at.push_back(power), at.push_back(power - 1);
  const auto count = static_cast<std::int64_t>(at.size());
  const Buffer positions = indices(at);
  Buffer out(DType::int64, 2 * count);
  probe_offsets(loop, positions.integers(), count, out.integers(), stream());
  const auto* const got = static_cast<const std::int64_t*>(out.host());
  std::int64_t wrong = 0;
  for (std::size_t k = 0; k < at.size(); ++k)
    wrong += got[2 * k] != offset(loop, 0, at[k]) || got[2 * k + 1] != offset(loop, 1, at[k]);
  INFO("n " << loop.n << " rank " << loop.rank);
  CHECK(wrong == 0);
}

/// Returns 0, 1, 2, …
Buffer counting(std::int64_t n) {
  Buffer x(DType::int32, n);
  for (std::int64_t i = 0; i < n; ++i) x.put(i, static_cast<double>(i));
  return x;
}
void check_each(const Buffer& out, const std::function<std::int64_t(std::int64_t)>& expected) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < out.size(); ++i) wrong += out[i] != static_cast<double>(expected(i));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("cuda indexing: offsets are exact below and above 2^31 elements, for any divisor",
          "[cuda_kernels][indexing]") {
  NEEDS_DEVICE;
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
  NEEDS_DEVICE;
  constexpr std::int64_t blocks = 8192, threads = 256;
  {
    const std::int64_t n = blocks * threads + 1000;  // strided copy: one element per thread
    Buffer out(DType::uint8, n), x(DType::uint8, 2);
    x.put(0, 3), x.put(1, 4);
    const Loop loop = strided({n / 2, 2}, {{2, 1}, {0, 1}});
    kernels().copy({DType::uint8, DType::uint8, out.data(), x.data(), loop}, stream());
    check_each(out, [](std::int64_t i) { return 3 + i % 2; });
  }
  {
    const std::int64_t rows = blocks * 8 + 100, n = 2;  // one row per warp
    Buffer x(DType::float32, rows * n), y(DType::float32, rows * n);
    x.fill(0);
    kernels().softmax({DType::float32, false, x.data(), y.data(), rows, n}, stream());
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < rows * n; ++i) wrong += y[i] != 0.5;
    CHECK(wrong == 0);
  }
  {
    // one tile per block; k = 0, so each result is the bias
    Product s{1, 1, 0};
    s.batch = blocks + 100, s.bias = true;
    Operands x(DType::float32, s);
    x.bias.put(0, 2);
    x.run();
    check_each(x.c, [](std::int64_t) { return 2; });
  }
  const auto sum = [](const Buffer& x, Buffer& out, const Loop& keep, const Loop& over) {
    kernels().reduce({braid::ReduceOp::sum, x.dtype(), out.data(), x.data(), 1, keep, over},
                     stream());
  };
  {
    const std::int64_t rows = blocks + 3, n = 513;  // a row per block, all of the same 513 numbers
    Buffer out(DType::int64, rows);
    sum(counting(n), out, strided({rows}, {{1}, {0}}), strided({n}, {{0}, {1}}));
    check_each(out, [](std::int64_t) { return n * (n - 1) / 2; });
  }
  {
    const std::int64_t batch = blocks + 100, side = 8, area = side * side;  // transposed tiles
    const Buffer x = counting(batch * area);
    Buffer out(DType::int32, x.size());
    const Loop turned = strided({batch, side, side}, {{area, side, 1}, {area, 1, side}});
    kernels().copy({DType::int32, DType::int32, out.data(), x.data(), turned}, stream());
    check_each(out,
               [](std::int64_t i) { return i / area * area + i % side * side + i / side % side; });
  }
  {
    // 32 columns per block: element j of output e is x[e + 2 j]
    const std::int64_t columns = 32 * blocks + 100, n = 17;
    Buffer out(DType::int64, columns);
    sum(counting(columns + 2 * n), out, strided({columns}, {{1}, {1}}), strided({n}, {{0}, {2}}));
    check_each(out, [](std::int64_t i) { return n * i + n * (n - 1); });
  }
}

TEST_CASE("cuda indexing: the last row of a table of 3 GB, read and written by index",
          "[cuda_kernels][indexing]") {
  NEEDS_DEVICE;
  if (!braid::test::in_part(1)) return;
  // The odd width forces byte accesses. No other row is touched: the emulation commits no memory
  // for untouched pages.
  constexpr std::int64_t width = 1027, rows = (std::int64_t{3} << 30) / width;
  braid::DeviceBackend& backend = *braid::device_context(stream().device()).backend;
  const braid::Block block = backend.allocate(static_cast<std::size_t>(rows * width), stream());
  auto* const table = static_cast<std::uint8_t*>(block.data);
  Buffer row(DType::uint8, width), out(DType::uint8, width);
  row.pattern(1);
  const Loop along = strided({width}, {{1}, {1}}), three = strided({width}, {{1}, {1}, {1}});
  kernels().copy({DType::uint8, DType::uint8, table + (rows - 1) * width, row.data(), along},
                 stream());
  const auto is_row_times = [&](int factor) {
    for (const std::int64_t last : {rows - 1, std::int64_t{-1}}) {
      const Buffer index = indices({last});
      kernels().gather_rows(
          {DType::uint8, table, index.integers(), out.data(), rows, 1, width, "rows", true},
          stream());
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < width; ++i)
        wrong += out[i] != static_cast<std::uint8_t>(factor * static_cast<int>(row[i]));
      CHECK(wrong == 0);
    }
  };
  is_row_times(1);
  const Buffer each = indices(Sizes(static_cast<std::size_t>(width), rows - 1));
  kernels().gather({DType::uint8, out.data(), each.integers(), table, three, rows, width},
                   stream());
  CHECK(out.bytes() == row.bytes());
  const Buffer last = indices({rows - 1});
  kernels().scatter_add_rows({DType::uint8, table, last.integers(), row.data(), rows, 1, width},
                             stream());
  is_row_times(2);
  kernels().scatter(
      {DType::uint8, false, table, each.integers(), row.data(), three, 1, 0, 0, rows, width},
      stream());
  is_row_times(1);
  backend.release(block, stream());
}

TEST_CASE("cuda reduce: more parts of a column than a warp joins", "[cuda_kernels][reduce]") {
  NEEDS_DEVICE;
  using braid::ReduceOp;
  constexpr std::int64_t columns = 8, n = 65664;  // element j of output e is x[e + 2 j]
  const auto value = [](std::int64_t i) { return i % 1000 == 999 ? 1 : 0; };
  for (const DType t :
       {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::int64}) {
    Buffer x(t, columns + 2 * n);
    for (std::int64_t i = 0; i < x.size(); ++i) x.put(i, value(i));
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::argmax}) {
      INFO(braid::name_of(t) << " " << static_cast<int>(op));
      Buffer out(op == ReduceOp::argmax ? DType::int64 : t, columns);
      kernels().reduce({op, t, out.data(), x.data(), 1, strided({columns}, {{1}, {1}}),
                        strided({n}, {{0}, {2}})},
                       stream());
      check_each(out, [&](std::int64_t e) {
        std::int64_t sum = 0, largest = 0, at = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          sum += value(e + 2 * j);
          if (value(e + 2 * j) > largest) largest = 1, at = j;
        }
        return op == ReduceOp::sum ? sum : op == ReduceOp::max ? largest : at;
      });
    }
  }
}
