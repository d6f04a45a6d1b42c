#include <algorithm>

#include <braid/core/internal/kernel_args/index.hpp>

#include "kernels/kernel_support.hpp"
#include "support/on_device.hpp"

using namespace kernel_test;

namespace {

std::vector<std::int64_t> rows_of(std::int64_t rows, std::int64_t table_rows) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = (i * 7919 + 3) % table_rows;
    index[static_cast<std::size_t>(i)] = i % 3 == 0 ? row - table_rows : row;
  }
  return index;
}
std::int64_t at(const std::vector<std::int64_t>& index, std::int64_t i, std::int64_t table_rows) {
  const std::int64_t row = index[static_cast<std::size_t>(i)];
  return row < 0 ? row + table_rows : row;
}

constexpr const char* kOwnName = "gather_rows";
void gather(const Buffer& table, const Buffer& index, Buffer& out, std::int64_t table_rows,
            std::int64_t width, bool wrap, const char* op = kOwnName) {
  kernels().gather_rows({table.dtype(), table.data(), index.integers(), out.data(), table_rows,
                         index.size(), width, op, wrap},
                        stream());
}
void scatter(Buffer& table, const Buffer& index, const Buffer& dy, std::int64_t table_rows,
             std::int64_t width) {
  kernels().scatter_add_rows(
      {table.dtype(), table.data(), index.integers(), dy.data(), table_rows, index.size(), width},
      stream());
}
/// True if a kernel may sum rows in another order than that of the indices.
bool sums_runs(DType t, std::int64_t rows) { return on_cuda() && is_floating(t) && rows > 256; }
void zero(Buffer& b) { std::memset(b.host(), 0, b.bytes().size()); }
/// CUDA throws at the next wait.
void wait() {
  if (on_cuda()) stream().synchronize();
}

}  // namespace

TEST_CASE("gather_rows: every dtype, width, number of rows and alignment", "[kernels][rows]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const std::int64_t width : {0, 1, 3, 16, 17, 300})
      for (const std::int64_t rows : {0, 1, 5, on_cuda() ? 100 : 1000})
        for (const std::int64_t shift : {0, 1}) {
          INFO(braid::name_of(t) << " " << rows << " x " << width << " shift " << shift);
          const std::int64_t table_rows = 37;
          Buffer table(t, table_rows * width, shift), out(t, rows * width, shift);
          table.pattern(1);
          const auto list = rows_of(rows, table_rows);
          const Buffer index = indices(list);
          check_threads(out,
                        [&, width = width] { gather(table, index, out, table_rows, width, true); });
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < width; ++j)
              wrong += out[i * width + j] != table[at(list, i, table_rows) * width + j];
          CHECK(wrong == 0);
        }
}

TEST_CASE("scatter_add_rows: every dtype, in the order of the indices, any number of threads",
          "[kernels][rows]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const std::int64_t width : {0, 1, 3, 16, 17, 300})
      for (const std::int64_t rows : {0, 1, on_cuda() ? 200 : 5, on_cuda() ? 600 : 1000})
        for (const std::int64_t table_rows : {1, 37}) {
          INFO(braid::name_of(t) << " " << rows << " x " << width << " into " << table_rows);
          Buffer table(t, table_rows * width, 1), dy(t, rows * width),
              expected(t, table_rows * width);
          dy.pattern(2);
          const auto list = rows_of(rows, table_rows);
          const Buffer index = indices(list);
          check_threads(table, [&, width = width, table_rows = table_rows] {
            zero(table);
            scatter(table, index, dy, table_rows, width);
          });
          if (sums_runs(t, rows)) continue;  // tested below
          // The same additions in sequence, each rounded to the dtype; on CUDA the sums of 16-bit
          // numbers are float32.
          Buffer sums(on_cuda() && braid::size_of(t) == 2 ? DType::float32 : t, table.size());
          zero(sums);
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < width; ++j) {
              const std::int64_t to = at(list, i, table_rows) * width + j;
              sums.put(to, sums[to] + dy[i * width + j]);
            }
          for (std::int64_t e = 0; e < table.size(); ++e) expected.put(e, sums[e]);
          CHECK(table.bytes() == expected.bytes());
        }
}

TEST_CASE("scatter_add_rows: rows of any frequency, in a fixed order, are as near as in double",
          "[kernels][rows]") {
  NEEDS_DEVICE;
  struct Indices {
    const char* name;
    std::int64_t rows, table_rows;
    std::int64_t (*at)(std::int64_t i, std::int64_t table_rows);
  };
  const Indices lists[] = {
      {"few", 257, 5, [](std::int64_t i, std::int64_t n) { return i * i % n; }},
      {"equal", 5000, 3, [](std::int64_t, std::int64_t) -> std::int64_t { return 1; }},
      {"different", 2100, 2100, [](std::int64_t i, std::int64_t n) { return i * 11 % n; }},
      {"in pairs of chunks", 3200, 50, [](std::int64_t i, std::int64_t) { return i / 64; }},
      {"across chunks", 3300, 99, [](std::int64_t i, std::int64_t) { return (i + 17) / 34; }},
      {"as words of a text", 4111, 911,
       [](std::int64_t i, std::int64_t n) {
         return n / (1 + i * 7919 % (i % 2 == 0 ? n : 13)) - 1;
       }},
  };
  std::size_t number = 0;
  for (const DType t : kFloats)
    for (const Indices& list : lists)
      for (const std::int64_t width : {1, 6, 40, on_cuda() ? 264 : 600}) {
        if (width > 40 && list.rows > 2100) continue;
        if (!braid::test::in_part(number++)) continue;
        CAPTURE(list.name, width, braid::name_of(t));
        std::vector<std::int64_t> index(static_cast<std::size_t>(list.rows));
        for (std::int64_t i = 0; i < list.rows; ++i) {
          const std::int64_t row = list.at(i, list.table_rows);
          index[static_cast<std::size_t>(i)] = i % 3 == 0 ? row - list.table_rows : row;
        }
        std::vector<unsigned char> first;
        for (const std::int64_t shift : {0, 1}) {
          Buffer table(t, list.table_rows * width, shift), dy(t, list.rows * width, shift);
          dy.pattern(2);
          const Buffer where = indices(index);
          zero(table);
          scatter(table, where, dy, list.table_rows, width);
          std::vector<double> sums(static_cast<std::size_t>(table.size())), sizes = sums,
                                                                            counts = sums;
          for (std::int64_t i = 0; i < list.rows; ++i)
            for (std::int64_t j = 0; j < width; ++j) {
              const auto to = static_cast<std::size_t>(at(index, i, list.table_rows) * width + j);
              const double x = dy[i * width + j];
              sums[to] += x, sizes[to] += std::fabs(x), counts[to] += 1;
            }
          std::int64_t wrong = 0;
          for (std::int64_t e = 0; e < table.size(); ++e) {
            const auto k = static_cast<std::size_t>(e);
            // 32 sums in a chunk, and at most 64 entries of each of three levels
            const double terms = sums_runs(t, list.rows) ? std::min(counts[k], 200.0) : counts[k],
                         rounded = sums_runs(t, list.rows) ? ulp(t, 1) * std::fabs(sums[k])
                                                           : ulp(t, 1) * terms * sizes[k],
                         summed = (t == DType::float64 ? 0x1p-52 : 0x1p-24) * terms * sizes[k];
            wrong += !(std::fabs(table[e] - sums[k]) <= summed + rounded);
          }
          CHECK(wrong == 0);
          if (shift == 0) first = table.bytes();
          CHECK(table.bytes() == first);
        }
      }
}

TEST_CASE("rows: an index outside the table is refused, on the CPU before anything is written",
          "[kernels][rows]") {
  NEEDS_DEVICE;
  for (const std::int64_t bad :
       {std::int64_t{5}, std::int64_t{-6}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    const std::string range = braid::str("), got ", bad, " at position 2");
    const Buffer index = indices({0, 1, bad});
    for (const std::int64_t width : {4, 0})
      for (const bool wrap : {true, false}) {
        Buffer table(DType::float32, 5 * width), out(DType::float32, 3 * width);
        table.pattern(1), out.pattern(2);
        const auto before = out.bytes(), table_before = table.bytes();
        const auto gathers = [&] {
          gather(table, index, out, 5, width, wrap, "embedding"), wait();
        };
        const auto scatters = [&] { scatter(table, index, out, 5, width), wait(); };
        CHECK_THROWS_AS(gathers(), braid::IndexError);
        CHECK_THROWS_WITH(gathers(), (wrap ? "embedding: expected indices in [-5, 5"
                                           : "embedding: expected indices in [0, 5") +
                                         range);
        if (!on_cuda()) CHECK(out.bytes() == before);
        // On CUDA the rows of valid indices are correct, and the row of the bad one is NaN.
        else if (width > 0)
          CHECK((out[4] == table[4] && std::isnan(out[8]) && std::isnan(out[11])));
        CHECK_THROWS_AS(scatters(), braid::IndexError);
        CHECK_THROWS_WITH(scatters(), "scatter_add_rows: expected indices in [-5, 5" + range);
        // On CUDA the rows of the valid indices were updated. No other row changed.
        const std::size_t first = on_cuda() ? static_cast<std::size_t>(2 * width) * 4 : 0;
        const auto after = table.bytes();
        CHECK(std::equal(after.begin() + static_cast<std::ptrdiff_t>(first), after.end(),
                         table_before.begin() + static_cast<std::ptrdiff_t>(first)));
      }
    Buffer flags(DType::bool_, 20), few(DType::bool_, 12);
    CHECK_THROWS_AS((gather(flags.fill(1), index, few, 5, 4, false), wait()), braid::IndexError);
    if (on_cuda()) CHECK((few[4] == 1 && few[8] == 0 && few[11] == 0));
  }
}

TEST_CASE("gather_rows: negative indices count from the end only where that was asked for",
          "[kernels][rows]") {
  NEEDS_DEVICE;
  const Buffer index = indices({-1});
  for (const std::int64_t width : {4, 0}) {
    Buffer table(DType::float32, 5 * width), out(DType::float32, width);
    table.pattern(1), out.pattern(2);
    const auto before = out.bytes();
    CHECK_THROWS_WITH((gather(table, index, out, 5, width, false), wait()),
                      "gather_rows: expected indices in [0, 5), got -1 at position 0");
    if (!on_cuda()) CHECK(out.bytes() == before);
    gather(table, index, out, 5, width, true);
    if (width > 0) CHECK((out[0] == table[16] && out[3] == table[19]));
  }
}
