#include <braid/core/kernel_args/index.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;
using braid::GatherRowsArgs;
using braid::ScatterAddRowsArgs;

namespace {

std::vector<std::int64_t> indices(std::int64_t rows, std::int64_t table_rows) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = (i * 7919 + 3) % table_rows;
    index[static_cast<std::size_t>(i)] = i % 3 == 0 ? row - table_rows : row;
  }
  return index;
}
std::int64_t wrapped(std::int64_t index, std::int64_t table_rows) {
  return index < 0 ? index + table_rows : index;
}

}  // namespace

TEST_CASE("gather_rows: every dtype, width and number of rows", "[kernels][rows]") {
  for (const DType t : kAll)
    for (const std::int64_t width : {0, 1, 3, 16, 17, 300})
      for (const std::int64_t rows : {0, 1, 5, 1000}) {
        const std::int64_t table_rows = 37;
        Buffer table(t, table_rows * width, 1), out(t, rows * width, 1);
        table.pattern(1);
        const auto index = indices(rows, table_rows);
        const GatherRowsArgs args{.dtype = t,
                                  .table = table.data(),
                                  .index = index.data(),
                                  .out = out.data(),
                                  .table_rows = table_rows,
                                  .rows = rows,
                                  .width = width,
                                  .wrap = true};
        check_threads(out, [&] { kernels().gather_rows(args, stream()); });
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < width; ++j)
            wrong += out[i * width + j] !=
                     table[wrapped(index[static_cast<std::size_t>(i)], table_rows) * width + j];
        CHECK(wrong == 0);
        CHECK(out.guards_intact());
      }
}

TEST_CASE("scatter_add_rows: every dtype, in the order of the indices, any number of threads",
          "[kernels][rows]") {
  for (const DType t : kAll)
    for (const std::int64_t width : {0, 1, 3, 16, 17, 300})
      for (const std::int64_t rows : {0, 1, 5, 1000}) {
        INFO(braid::name_of(t) << " " << rows << " x " << width);
        const std::int64_t table_rows = 37;
        Buffer table(t, table_rows * width, 1), dy(t, rows * width),
            expected(t, table_rows * width);
        dy.pattern(2);
        const auto index = indices(rows, table_rows);
        const ScatterAddRowsArgs args{.dtype = t,
                                      .table = table.data(),
                                      .index = index.data(),
                                      .dy = dy.data(),
                                      .table_rows = table_rows,
                                      .rows = rows,
                                      .width = width};
        const auto zero = [&](Buffer& b) { std::memset(b.data(), 0, b.bytes().size()); };
        check_threads(table, [&] {
          zero(table);
          kernels().scatter_add_rows(args, stream());
        });
        // The same additions, one after the other, each rounded to the dtype.
        zero(expected);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < width; ++j) {
            const std::int64_t at =
                wrapped(index[static_cast<std::size_t>(i)], table_rows) * width + j;
            expected.put(at, expected[at] + dy[i * width + j]);
          }
        CHECK(table.bytes() == expected.bytes());
        CHECK(table.guards_intact());
      }
}

TEST_CASE("rows: an index outside the table is refused before anything is written",
          "[kernels][rows]") {
  Buffer table(DType::float32, 20), out(DType::float32, 12);
  table.pattern(1), out.pattern(2);
  for (const std::int64_t bad :
       {std::int64_t{5}, std::int64_t{-6}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    const std::int64_t index[] = {0, 1, bad};
    const auto before = out.bytes(), table_before = table.bytes();
    const GatherRowsArgs gather{.dtype = DType::float32,
                                .table = table.data(),
                                .index = index,
                                .out = out.data(),
                                .table_rows = 5,
                                .rows = 3,
                                .width = 4,
                                .wrap = true};
    CHECK_THROWS_AS(kernels().gather_rows(gather, stream()), braid::IndexError);
    CHECK_THROWS_WITH(
        kernels().gather_rows(gather, stream()),
        braid::str("gather_rows: expected indices in [-5, 5), got ", bad, " at position 2"));
    const ScatterAddRowsArgs scatter{.dtype = DType::float32,
                                     .table = table.data(),
                                     .index = index,
                                     .dy = out.data(),
                                     .table_rows = 5,
                                     .rows = 3,
                                     .width = 4};
    CHECK_THROWS_AS(kernels().scatter_add_rows(scatter, stream()), braid::IndexError);
    CHECK_THROWS_WITH(
        kernels().scatter_add_rows(scatter, stream()),
        braid::str("scatter_add_rows: expected indices in [-5, 5), got ", bad, " at position 2"));
    GatherRowsArgs plain = gather;
    plain.wrap = false;
    CHECK_THROWS_WITH(
        kernels().gather_rows(plain, stream()),
        braid::str("gather_rows: expected indices in [0, 5), got ", bad, " at position 2"));
    CHECK(out.bytes() == before);
    CHECK(table.bytes() == table_before);
  }
}

TEST_CASE("gather_rows: negative indices count from the end only where that was asked for",
          "[kernels][rows]") {
  Buffer table(DType::float32, 20), out(DType::float32, 4);
  table.pattern(1), out.pattern(2);
  const std::int64_t index[] = {-1};
  GatherRowsArgs args{.dtype = DType::float32,
                      .table = table.data(),
                      .index = index,
                      .out = out.data(),
                      .table_rows = 5,
                      .rows = 1,
                      .width = 4};
  const auto before = out.bytes();
  CHECK_THROWS_WITH(kernels().gather_rows(args, stream()),
                    "gather_rows: expected indices in [0, 5), got -1 at position 0");
  CHECK(out.bytes() == before);
  args.wrap = true;
  kernels().gather_rows(args, stream());
  CHECK((out[0] == table[16] && out[3] == table[19]));
}
