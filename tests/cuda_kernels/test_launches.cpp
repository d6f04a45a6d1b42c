#include <braid/core/internal/kernel_args/index.hpp>
#include <braid/core/internal/kernel_args/loss.hpp>
#include <braid/core/internal/kernel_args/norm.hpp>
#include <braid/core/internal/kernel_args/optim.hpp>
#include <braid/core/internal/kernel_args/reduce.hpp>
#include <braid/core/internal/kernel_args/scan.hpp>

#include "cuda/sort.hpp"
#include "kernels/kernel_support.hpp"
#include "support/on_device.hpp"
#if defined(BRAID_CUDA_SIMT)
#include "simt/runtime/control.hpp"
#include "simt/stats.hpp"
#endif

using namespace kernel_test;

#if defined(BRAID_CUDA_SIMT)
namespace {

template <class Call> std::uint64_t launches_of(const Call& call) {
  stream().synchronize();
  const std::uint64_t before = braid::simt::stats().grids;
  call();
  stream().synchronize();
  return braid::simt::stats().grids - before;
}

}  // namespace
#endif

TEST_CASE("cuda norm: channels of a thread's second pack", "[cuda_kernels][norm]") {
  NEEDS_DEVICE;
  struct Shape {
    std::int64_t batch, channels, inner;
  };
  constexpr std::int64_t launched = std::int64_t{8192} * 256 * 2;  // elements of the first packs
  std::size_t number = 0;
  for (const Shape& shape : {Shape{199800, 3, 7}, Shape{838900, 5, 1}, Shape{3, 2, 700000}}) {
    if (!braid::test::in_part(number++)) continue;
    const std::int64_t channels = shape.channels, inner = shape.inner,
                       n = shape.batch * channels * inner;
    CAPTURE(channels, inner);
    REQUIRE(n > launched);
    Buffer x(DType::float64, n), y(DType::float64, n), mean(DType::float64, channels),
        rstd(DType::float64, channels);
    x.fill(2);
    for (std::int64_t c = 0; c < channels; ++c)
      mean.put(c, static_cast<double>(-c)), rstd.put(c, static_cast<double>(c + 1));
    braid::NormChannelsArgs args{};
    args.dtype = DType::float64, args.given = true, args.x = x.data(), args.y = y.data();
    args.mean = mean.data(), args.rstd = rstd.data();
    args.batch = shape.batch, args.channels = channels, args.inner = inner;
    kernels().norm_channels(args, stream());
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double c = static_cast<double>(i / inner % channels);
      if (y[i] != (2 + c) * (c + 1)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

#if defined(BRAID_CUDA_SIMT)
TEST_CASE("cuda sort: long rows in chunks that fit in the scratch", "[cuda_kernels][sort]") {
  NEEDS_DEVICE;
  const std::int64_t rows = 3, n = 2500;
  for (const std::int64_t k : {n, std::int64_t{7}})
    for (const DType t : {DType::float64, DType::float16, DType::uint8}) {
      Buffer x(t, rows * n);
      x.pattern(1);
      const auto results = [&](std::int64_t entries, unsigned chunks) {
        Buffer values(t, rows * k), index(DType::int64, rows * k);
        const braid::SortArgs args{t, x.data(), values.data(), index.integers(), rows, n, k, true};
        // tiles of 1024, two merges, the result
        CHECK(launches_of([&] { braid::cuda::sort_in_chunks(args, entries, stream()); }) ==
              4 * chunks);
        std::vector<unsigned char> bytes = values.bytes(), places = index.bytes();
        bytes.insert(bytes.end(), places.begin(), places.end());
        return bytes;
      };
      const auto whole = results(rows * n, 1);
      CHECK(results(2 * n + 1, 2) == whole);
      CHECK(results(1, 3) == whole);  // a row at least
    }
}

TEST_CASE("cuda scatter: a line of many elements is sorted", "[cuda_kernels][index]") {
  NEEDS_DEVICE;
  const std::int64_t most = 20000, n = 3000;
  Sizes at(most);
  for (std::int64_t j = 0; j < most; ++j) at[static_cast<std::size_t>(j)] = j * 7 % n;
  const Buffer index = indices(at);
  Buffer src(DType::float32, most), out(DType::float32, n);
  src.pattern(1), out.pattern(2);
  const auto launches = [&](std::int64_t m, bool add) {
    const braid::ScatterArgs args{DType::float32,
                                  add,
                                  out.data(),
                                  index.integers(),
                                  src.data(),
                                  strided({1}, {{0}, {0}, {0}}),
                                  m,
                                  1,
                                  1,
                                  n,
                                  1};
    return launches_of([&] { kernels().scatter(args, stream()); });
  };
  CHECK(launches(100, true) == 1);
  CHECK(launches(100, false) == 1);
  const unsigned sorts = 1 + 1 + 5 + 1;      // keys, tiles of 1024, merges, the result
  CHECK(launches(most, true) == sorts + 4);  // 625, 40, 3 and one chunk of 32
  CHECK(launches(most, false) == sorts + 1);
}

TEST_CASE("cuda scan: lines of many parts in one launch", "[cuda_kernels][scan]") {
  NEEDS_DEVICE;
  using braid::ScanOp;
  struct Lines {
    ScanOp op;
    std::int64_t outer, inner, parts;  // more than 32 and 1024 parts: trees of two and three levels
    bool reverse;
  };
  for (const Lines& lines :
       {Lines{ScanOp::recurrence, 2, 1, 34, false}, Lines{ScanOp::recurrence, 1, 1, 66, true},
        Lines{ScanOp::sum, 1, 1, 1026, false}, Lines{ScanOp::recurrence, 1, 33, 2, true}}) {
    CAPTURE(lines.parts, lines.inner);
    if (lines.parts > 1000 && !braid::test::in_part(3)) continue;
    const std::int64_t n = 4096 * lines.parts + 7, all = lines.outer * n * lines.inner;
    Buffer x(DType::int64, all), a(DType::int64, all), y(DType::int64, all);
    for (std::int64_t i = 0; i < all; ++i)
      x.put(i, static_cast<double>(i % 1000 - 400)), a.put(i, i % 7 == 0 ? -1 : 1);
    braid::ScanArgs args{};
    args.op = lines.op, args.dtype = DType::int64, args.x = x.data(), args.y = y.data();
    args.a = a.data(), args.reverse = lines.reverse;
    args.outer = lines.outer, args.inner = lines.inner, args.n = n;
    stream().synchronize();
    braid::simt::clear_launch_log();
    kernels().scan(args, stream());
    stream().synchronize();
    const auto launches = braid::simt::launch_log();
    REQUIRE(launches.size() == 1);
    CHECK(launches[0].kernel.find("scan_parts") != std::string::npos);
    std::int64_t wrong = 0;
    for (std::int64_t line = 0; line < lines.outer * lines.inner; ++line) {
      double sum = 0;  // of numbers that double represents
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t at = line / lines.inner * n + (lines.reverse ? n - 1 - j : j),
                           i = at * lines.inner + line % lines.inner;
        sum = (lines.op == ScanOp::recurrence ? a[i] : 1) * sum + x[i];
        wrong += y[i] != sum;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cuda reduce: trees of chunks in one launch", "[cuda_kernels][reduce]") {
  NEEDS_DEVICE;
  struct Shape {
    std::int64_t outputs, n;
    bool columns;
    DType dtype;
  };
  for (const Shape& s : {
           Shape{1, 4097, false, DType::float32},
           Shape{3, std::int64_t{4096} * 5 + 1, false, DType::float32},
           // a sum of chunks of 4 * 4096 in two levels, argmax in three
           Shape{1, std::int64_t{4096} * 4097, false, DType::uint8},
           Shape{1025, 4097, false, DType::uint8},  // more outputs than tickets
           Shape{33, 129, true, DType::float32},
           Shape{9, 128 * 129 + 3, true, DType::float32},  // three levels
           Shape{10, 128 * 129 + 3, true, DType::int64},
       }) {
    CAPTURE(s.outputs, s.n, s.columns);
    Buffer x(s.dtype, s.outputs * s.n);
    const DType result = s.dtype == DType::float32 ? DType::float32 : DType::int64;
    Buffer sums(result, s.outputs), places(DType::int64, s.outputs);
    x.pattern(1);
    const std::int64_t apart = s.columns ? 1 : s.n, step = s.columns ? s.outputs : 1;
    const auto reduce = [&](braid::ReduceOp op, Buffer& out) {
      kernels().reduce({op, s.dtype, out.data(), x.data(), 1.0,
                        strided({s.outputs}, {{1}, {apart}}), strided({s.n}, {{0}, {step}})},
                       stream());
    };
    CHECK(launches_of([&] { reduce(braid::ReduceOp::sum, sums); }) == 1);
    const bool index = s.n > 1 << 24 || x.size() < 1 << 20;
    if (index) reduce(braid::ReduceOp::argmax, places);
    std::int64_t wrong = 0;
    for (std::int64_t e = 0; e < s.outputs; ++e) {
      double sum = 0, size = 0;
      std::int64_t best = 0;
      const auto at = [&](std::int64_t j) { return x[e * apart + j * step]; };
      for (std::int64_t j = 0; j < s.n; ++j) {
        sum += at(j), size += std::fabs(at(j));
        if (at(j) > at(best)) best = j;
      }
      // 4 more than the levels of the sum's tree
      const double bound = s.dtype == DType::float32
                               ? (std::log2(static_cast<double>(s.n)) + 4) * size * 0x1p-24
                               : 0;
      wrong += std::fabs(sums[e] - sum) > bound;
      if (index) wrong += places[e] != static_cast<double>(best);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cuda cross_entropy: the last block sums the rows", "[cuda_kernels][loss]") {
  NEEDS_DEVICE;
  // rows of a thread, a warp and a block; above 4096 the sum is another launch
  for (const std::int64_t rows : {1, 16, 17, 512, 513, 1027, 4096, 4097})
    for (const std::int64_t n : {3, 1025}) {  // a warp or a block for each row
      if (n > 1000 && rows > 600) continue;
      CAPTURE(rows, n);
      Buffer x(DType::float32, rows * n), labels(DType::int64, rows), lse(DType::float32, rows),
          losses(DType::float32, rows), sum(DType::float32, 1), total(DType::float32, 1);
      x.pattern(1);
      for (std::int64_t r = 0; r < rows; ++r) labels.put(r, static_cast<double>(r % n));
      braid::CrossEntropyArgs args{};
      args.dtype = DType::float32, args.x = x.data(), args.labels = labels.integers();
      args.label_stride = 1, args.lse = lse.data(), args.sum = sum.data(), args.scale = 1;
      args.rows = rows, args.n = n, args.row_loss = losses.data(), args.total = total.data();
      for (int round = 0; round < 2; ++round) {  // the counters are zero after each
        sum.fill(0);
        CHECK(launches_of([&] { kernels().cross_entropy(args, stream()); }) ==
              (rows <= 4096 ? 1u : 2u));
        double expected = 0;
        for (std::int64_t r = 0; r < rows; ++r) expected += losses[r];
        // the levels of the sum's tree, and 4 numbers of a thread one after the other
        const double bound = (std::log2(static_cast<double>(rows)) + 4) * expected * 0x1p-24;
        CHECK(std::fabs(sum[0] - expected) <= bound);
        CHECK(total[0] == static_cast<double>(rows));
      }
    }
}

TEST_CASE("cuda adam: hundreds of parameters in one launch", "[cuda_kernels][optim]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const std::int64_t count : {1, 61, 601}) {
      std::vector<unsigned char> first;
      for (const std::int64_t shift : {0, 1}) {
        Buffer states(t, 4 * 16 * count, shift);
        states.pattern(1);
        for (std::int64_t i = 0; i < states.size(); ++i) states.put(i, std::fabs(states[i]));
        std::vector<braid::OptimItem> items;
        for (std::int64_t i = 0; i < count; ++i) {
          const auto at = [&](std::int64_t element) {
            return static_cast<char*>(states.data()) +
                   element * static_cast<std::int64_t>(size_of(t));
          };
          items.push_back({at(64 * i), at(64 * i + 16), at(64 * i + 32), at(64 * i + 48), 16});
        }
        braid::AdamArgs args{};
        args.dtype = t, args.items = items.data(), args.count = count;
        args.lr = 0.01, args.beta1 = 0.9, args.beta2 = 0.999, args.eps = 1e-8, args.step = 3;
        CHECK(launches_of([&] { kernels().adam(args, stream()); }) == (count == 601 ? 2u : 1u));
        if (shift == 0) first = states.bytes();
        CHECK(states.bytes() == first);
      }
    }
}

TEST_CASE("cuda total_norm: hundreds of tensors in one launch", "[cuda_kernels][optim]") {
  NEEDS_DEVICE;
  for (const std::int64_t count : {1, 61, 540, 541}) {
    CAPTURE(count);
    Buffer all(DType::float32, 16 * count), results(DType::float32, 2);
    all.pattern(1);
    std::vector<braid::OptimItem> items;
    for (std::int64_t i = 0; i < count; ++i)
      items.push_back({static_cast<float*>(all.data()) + 16 * i, nullptr, nullptr, nullptr, 16});
    float* const result = static_cast<float*>(results.data());
    const std::uint64_t launches = count == 541 ? 2u : 1u;
    CHECK(launches_of([&] {
            kernels().total_norm({DType::float32, items.data(), count, 2, result, 1, result + 1},
                                 stream());
          }) == launches);
    CHECK(launches_of([&] {
            kernels().scale_list({DType::float32, items.data(), count, result + 1}, stream());
          }) == launches);
  }
}

TEST_CASE("cuda norm: the last block of 32 channels joins their tiles", "[cuda_kernels][norm]") {
  NEEDS_DEVICE;
  struct Shape {
    std::int64_t batch, channels, inner;
  };
  for (const Shape& s : {
           Shape{2, 1, 1},      // one block
           Shape{70, 33, 1},    // three tiles of two groups, the second of one channel
           Shape{2049, 3, 1},   // 33 tiles: five warps join them
           Shape{3, 32769, 1},  // more groups than tickets
           Shape{1, 2, 300},    // one tile
           Shape{13, 35, 3},    // 13 tiles of two groups, a block for each channel
           Shape{64, 2, 2},     // as many tiles as there may be
           Shape{131, 2, 2},    // tiles of four samples
       }) {
    if (s.channels > 1000 && !braid::test::in_part(2)) continue;
    CAPTURE(s.batch, s.channels, s.inner);
    const std::int64_t channels = s.channels, inner = s.inner, all = s.batch * channels * inner;
    const double count = static_cast<double>(s.batch * inner);
    Buffer x(DType::float64, all), dy(DType::float64, all), y(DType::float64, all),
        mean(DType::float64, channels), rstd(DType::float64, channels),
        var(DType::float64, channels), dweight(DType::float64, channels),
        dbias(DType::float64, channels);
    x.pattern(1), dy.pattern(2);
    braid::NormChannelsArgs args{};
    args.dtype = DType::float64, args.x = x.data(), args.y = y.data(), args.mean = mean.data();
    args.rstd = rstd.data(), args.var = var.data(), args.eps = 1e-5;
    args.batch = s.batch, args.channels = channels, args.inner = inner;
    braid::NormChannelsBackwardArgs back{};
    back.dtype = DType::float64, back.x = x.data(), back.mean = mean.data();
    back.rstd = rstd.data(), back.dy = dy.data(), back.dx = y.data();
    back.dweight = dweight.data(), back.dbias = dbias.data();
    back.batch = s.batch, back.channels = channels, back.inner = inner;
    for (int round = 0; round < 2; ++round) {  // the counters are zero after each
      CHECK(launches_of([&] { kernels().norm_channels(args, stream()); }) == 3);
      CHECK(launches_of([&] { kernels().norm_channels_backward(back, stream()); }) == 2);
      std::int64_t wrong = 0;
      for (std::int64_t c = 0; c < channels; ++c) {
        const auto sum = [&](const auto& f) {
          double total = 0;
          for (std::int64_t b = 0; b < s.batch; ++b)
            for (std::int64_t l = 0; l < inner; ++l) total += f((b * channels + c) * inner + l);
          return total;
        };
        const double m = sum([&](std::int64_t i) { return x[i]; }) / count,
                     v = sum([&](std::int64_t i) { return (x[i] - m) * (x[i] - m); }) / count,
                     r = 1 / std::sqrt(v + 1e-5), bias = sum([&](std::int64_t i) { return dy[i]; }),
                     weight = sum([&](std::int64_t i) { return dy[i] * (x[i] - m) * r; });
        // numbers up to 2, and rstd, which amplifies the error of the mean
        const double bound = count * (1 + r) * (1 + r) * 0x1p-48;
        wrong += std::fabs(mean[c] - m) > bound || std::fabs(var[c] - v) > bound;
        wrong += std::fabs(dbias[c] - bias) > bound || std::fabs(dweight[c] - weight) > bound;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("cuda norm: the last blocks add the sums of all blocks", "[cuda_kernels][norm]") {
  NEEDS_DEVICE;
  struct Shape {
    std::int64_t rows, n;
    unsigned launches;
    DType dtype = DType::float32;
  };
  for (const Shape& s : {
           Shape{1, 8, 1},      // one block
           Shape{40, 13, 1},    // fewer blocks than chains, in single numbers
           Shape{1100, 12, 1},  // many of each chain
           Shape{20, 1028, 1},  // a block a row
           Shape{31, 2053, 1},  // 31 sums of 2053 single numbers are below 2^16, 32 above
           Shape{32, 2053, 2},
           Shape{33, 8192, 2},                 // in packs of four
           Shape{40, 24, 1, DType::bfloat16},  // packs of eight, whose sums are in packs of four
           Shape{9, 1032, 1, DType::float16},
       }) {
    if (s.n > 2000 && !braid::test::in_part(static_cast<std::size_t>(s.rows))) continue;
    CAPTURE(s.rows, s.n);
    const std::int64_t all = s.rows * s.n;
    const DType t = s.dtype;
    Buffer x(t, all), dy(t, all), dx(t, all), mean(DType::float32, s.rows),
        rstd(DType::float32, s.rows), weight(t, s.n), dweight(t, s.n), dbias(t, s.n);
    x.pattern(1), dy.pattern(2), mean.pattern(3), rstd.pattern(4), weight.pattern(5);
    // the counters are zero after each
    for (const auto& [with_weight, with_bias] :
         {std::pair{true, true}, {true, false}, {false, true}, {true, true}}) {
      braid::NormRowsBackwardArgs args{};
      args.dtype = t, args.center = true, args.x = x.data(), args.dy = dy.data();
      args.dx = dx.data(), args.mean = mean.data(), args.rstd = rstd.data();
      args.weight = weight.data();
      args.dweight = with_weight ? dweight.data() : nullptr;
      args.dbias = with_bias ? dbias.data() : nullptr;
      args.rows = s.rows, args.n = s.n, args.groups = 1, args.inner = 1;
      dweight.fill(0), dbias.fill(0);
      CHECK(launches_of([&] { kernels().norm_rows_backward(args, stream()); }) == s.launches);
      std::int64_t wrong = 0;
      for (std::int64_t j = 0; j < s.n; ++j) {
        double weights = 0, biases = 0, size = 0;
        for (std::int64_t r = 0; r < s.rows; ++r) {
          const double d = dy[r * s.n + j], h = (x[r * s.n + j] - mean[r]) * rstd[r];
          weights += d * h, biases += d, size += std::fabs(d) * (std::fabs(h) + 1);
        }
        // each of at most 256 blocks, 8 rows of a warp, and the rounding of h
        const double bound = (static_cast<double>(s.rows) + 8) * size * 0x1p-24;
        const auto differs = [&](double got, double want) {
          const double last = t == DType::float16 ? 0x1p-11 : t == DType::bfloat16 ? 0x1p-8 : 0;
          return std::fabs(got - want) > bound + 1.001 * last * std::fabs(want);
        };
        wrong += differs(dweight[j], with_weight ? weights : 0);
        wrong += differs(dbias[j], with_bias ? biases : 0);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("cuda norm: rows that fit in registers are read once in backward",
          "[cuda_kernels][norm]") {
  NEEDS_DEVICE;
  const auto launches = [](std::int64_t n, std::int64_t groups, bool with_weight) {
    const std::int64_t rows = 8;
    Buffer x(DType::float32, rows * n), dy(DType::float32, rows * n), dx(DType::float32, rows * n),
        statistics(DType::float32, rows), weights(DType::float32, groups * n);
    for (Buffer* b : {&x, &dy, &statistics}) b->pattern(1);
    braid::NormRowsBackwardArgs args{};
    args.dtype = DType::float32, args.x = x.data(), args.dy = dy.data(), args.dx = dx.data();
    args.rstd = statistics.data(), args.rows = rows, args.n = n, args.groups = groups;
    args.inner = 1, args.dweight = with_weight ? weights.data() : nullptr;
    return launches_of([&] { kernels().norm_rows_backward(args, stream()); });
  };
  CHECK(launches(768, 1, true) == 1);  // dx with sums of blocks, and the sums of these
  CHECK(launches(8192, 1, true) == 1);
  CHECK(launches(8193, 1, true) == 2);  // dx, then the sums
  CHECK(launches(12, 2, true) == 2);
  CHECK(launches(768, 1, false) == 1);
}
#endif
