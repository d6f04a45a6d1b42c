#include <braid/core/kernel_args/index.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"

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

TEST_CASE("cuda gather_rows: every dtype, width, number of rows and alignment",
          "[cuda_kernels][rows]") {
  NEEDS_GPU;
  for (const DType t : kAll)
    for (const std::int64_t width : {0, 1, 3, 16, 17, 300})
      for (const std::int64_t rows : {0, 1, 5, 100})
        for (const std::int64_t shift : {0, 1}) {
          INFO(braid::name_of(t) << " " << rows << " x " << width << " shift " << shift);
          const std::int64_t table_rows = 37;
          Buffer table(t, table_rows * width), out(t, rows * width);
          table.pattern(1);
          const auto index = indices(rows, table_rows);
          Twin gtable(table, shift), gout(out, shift);
          const IndexTwin gindex(index);
          gpu().gather_rows(GatherRowsArgs{.dtype = t,
                                           .table = gtable.data(),
                                           .index = gindex.data(),
                                           .out = gout.data(),
                                           .table_rows = table_rows,
                                           .rows = rows,
                                           .width = width,
                                           .wrap = true},
                            gpu_stream());
          gout.fetch();
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < width; ++j)
              wrong += out[i * width + j] !=
                       table[wrapped(index[static_cast<std::size_t>(i)], table_rows) * width + j];
          CHECK(wrong == 0);
        }
}

TEST_CASE("cuda scatter_add_rows: every dtype, in the order of the indices",
          "[cuda_kernels][rows]") {
  NEEDS_GPU;
  for (const DType t : kAll)
    for (const std::int64_t width : {0, 1, 17, 300})
      for (const std::int64_t rows : {0, 1, 5, 600})
        for (const std::int64_t table_rows : {1, 37}) {
          INFO(braid::name_of(t) << " " << rows << " x " << width << " into " << table_rows);
          Buffer table(t, table_rows * width), dy(t, rows * width), expected(t, table_rows * width);
          dy.pattern(2);
          std::memset(table.data(), 0, table.bytes().size()),
              std::memset(expected.data(), 0, expected.bytes().size());
          const auto index = indices(rows, table_rows);
          Twin gtable(table, 1), gdy(dy);
          const IndexTwin gindex(index);
          gpu().scatter_add_rows(ScatterAddRowsArgs{.dtype = t,
                                                    .table = gtable.data(),
                                                    .index = gindex.data(),
                                                    .dy = gdy.data(),
                                                    .table_rows = table_rows,
                                                    .rows = rows,
                                                    .width = width},
                                 gpu_stream());
          gtable.fetch();
          // The same additions, one after the other, each rounded to the dtype.
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < width; ++j) {
              const std::int64_t at =
                  wrapped(index[static_cast<std::size_t>(i)], table_rows) * width + j;
              expected.put(at, expected[at] + dy[i * width + j]);
            }
          CHECK(table.bytes() == expected.bytes());
        }
}

TEST_CASE("cuda rows: an index outside the table is thrown at the next wait, and harms nothing",
          "[cuda_kernels][rows]") {
  NEEDS_GPU;
  Buffer table(DType::float32, 20), out(DType::float32, 12), flags(DType::bool_, 20),
      few(DType::bool_, 12);
  table.pattern(1), flags.pattern(1);
  for (const std::int64_t bad :
       {std::int64_t{5}, std::int64_t{-6}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    const std::string range =
        braid::str(": expected indices in [-5, 5), got ", bad, " at position 2");
    const IndexTwin index(std::vector<std::int64_t>{0, 1, bad});
    const auto before = table.bytes();
    Twin gtable(table), gout(out), gflags(flags), gfew(few);
    for (const std::int64_t width : {4, 0}) {
      gpu().gather_rows(GatherRowsArgs{.dtype = DType::float32,
                                       .table = gtable.data(),
                                       .index = index.data(),
                                       .out = gout.data(),
                                       .table_rows = 5,
                                       .rows = 3,
                                       .width = width,
                                       .op = "embedding",
                                       .wrap = true},
                        gpu_stream());
      CHECK_THROWS_WITH(gpu_stream().synchronize(), "embedding" + range);
    }
    gout.fetch();
    CHECK((out[4] == table[4] && std::isnan(out[8]) && std::isnan(out[11])));
    gpu().gather_rows(GatherRowsArgs{.dtype = DType::bool_,
                                     .table = gflags.data(),
                                     .index = index.data(),
                                     .out = gfew.data(),
                                     .table_rows = 5,
                                     .rows = 3,
                                     .width = 4},
                      gpu_stream());
    CHECK_THROWS_AS(gpu_stream().synchronize(), braid::IndexError);
    gfew.fetch();
    CHECK((few[8] == 0 && few[11] == 0));
    for (const std::int64_t width : {4, 0}) {
      gpu().scatter_add_rows(ScatterAddRowsArgs{.dtype = DType::float32,
                                                .table = gtable.data(),
                                                .index = index.data(),
                                                .dy = gout.data(),
                                                .table_rows = 5,
                                                .rows = 3,
                                                .width = width},
                             gpu_stream());
      CHECK_THROWS_WITH(gpu_stream().synchronize(), "scatter_add_rows" + range);
    }
    gtable.fetch();
    const auto after = table.bytes();
    // the rows of the good indices got theirs, no other changed
    CHECK(std::memcmp(after.data() + 8 * 4, before.data() + 8 * 4, 12 * 4) == 0);
  }
}

TEST_CASE("cuda gather_rows: negative indices count from the end only where that was asked for",
          "[cuda_kernels][rows]") {
  NEEDS_GPU;
  Buffer table(DType::float32, 20), out(DType::float32, 4);
  table.pattern(1);
  const IndexTwin index(std::vector<std::int64_t>{-1});
  Twin gtable(table), gout(out);
  GatherRowsArgs args{.dtype = DType::float32,
                      .table = gtable.data(),
                      .index = index.data(),
                      .out = gout.data(),
                      .table_rows = 5,
                      .rows = 1,
                      .width = 4};
  for (const std::int64_t width : {4, 0}) {
    args.width = width;
    gpu().gather_rows(args, gpu_stream());
    CHECK_THROWS_WITH(gpu_stream().synchronize(),
                      "gather_rows: expected indices in [0, 5), got -1 at position 0");
  }
  args.wrap = true, args.width = 4;
  gpu().gather_rows(args, gpu_stream());
  gout.fetch();
  CHECK((out[0] == table[16] && out[3] == table[19]));
}
