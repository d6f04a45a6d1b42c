// How often the kernels of rows read and write global memory, as the emulation counts it: the
// sectors of 32 bytes of a call, against those of its operands.
#if defined(BRAID_CUDA_SIMT) && defined(BRAID_SIMT_CHECK)
#include <braid/core/internal/kernel_args/loss.hpp>
#include <braid/core/internal/kernel_args/norm.hpp>
#include <braid/core/internal/kernel_args/softmax.hpp>

#include "kernels/kernel_support.hpp"
#include "profile_lines.hpp"

using namespace kernel_test;

namespace {

/// The sectors that a call touches, as a multiple of the bytes of x.
template <class Call> double times_of(const Buffer& x, const Call& call) {
  const braid::simt::Profile profile;
  call();
  stream().synchronize();
  std::uint64_t sectors = 0;
  for (const braid::simt::ProfileLine& line : profile.lines())
    if (!line.shared) sectors += line.cost;
  const auto bytes = static_cast<double>(x.size()) * static_cast<double>(size_of(x.dtype()));
  return 32 * static_cast<double>(sectors) / bytes;
}

double softmax_times(DType t, std::int64_t n, bool backward) {
  Buffer x(t, 2 * n), y(t, 2 * n), dx(t, 2 * n);
  x.pattern(1), y.pattern(2);
  return times_of(x, [&] {
    if (backward)
      kernels().softmax_backward({t, false, y.data(), x.data(), dx.data(), 2, n}, stream());
    else kernels().softmax({t, false, x.data(), y.data(), 2, n}, stream());
  });
}

double cross_entropy_times(DType t, std::int64_t n, bool backward) {
  constexpr std::int64_t rows = 3;
  const DType sums = size_of(t) == 2 ? DType::float32 : t;
  Buffer x(t, rows * n), dx(t, rows * n), labels(DType::int64, rows), lse(sums, rows), sum(t, 1),
      dy(t, 1);
  x.pattern(1), lse.pattern(2), dy.pattern(3);
  for (std::int64_t i = 0; i < rows; ++i) labels.put(i, static_cast<double>(7 * i));
  const auto* const of_rows = static_cast<const std::int64_t*>(labels.data());
  return times_of(x, [&] {
    if (backward) {
      braid::CrossEntropyBackwardArgs args{};
      args.dtype = t, args.x = x.data(), args.labels = of_rows, args.label_stride = 1;
      args.lse = lse.data(), args.dy = dy.data(), args.dx = dx.data(), args.scale = 1;
      args.rows = rows, args.n = n;
      kernels().cross_entropy_backward(args, stream());
    } else {
      braid::CrossEntropyArgs args{};
      args.dtype = t, args.x = x.data(), args.labels = of_rows, args.label_stride = 1;
      args.lse = lse.data(), args.sum = sum.data(), args.scale = 1, args.rows = rows, args.n = n;
      kernels().cross_entropy(args, stream());
    }
  });
}

double norm_times(std::int64_t rows, std::int64_t n) {
  const DType t = DType::float32;
  Buffer x(t, rows * n), y(t, rows * n), mean(t, rows), rstd(t, rows);
  x.pattern(1);
  return times_of(x, [&] {
    kernels().norm_rows({t, true, x.data(), nullptr, nullptr, y.data(), mean.data(), rstd.data(),
                         1e-5, rows, n, 1, 1},
                        stream());
  });
}

}  // namespace

TEST_CASE("cuda rows: softmax, cross entropy and norms touch each operand once",
          "[cuda_kernels][softmax][loss][norm][profile]") {
  NEEDS_DEVICE;
  struct Case {
    const char* name;
    double least;  // operands of the size of x
    double times;
  };
  for (const Case& c : {
           Case{"softmax", 2, softmax_times(DType::float32, 1024, false)},
           Case{"softmax of a block", 2, softmax_times(DType::float32, 8192, false)},
           Case{"long softmax", 2, softmax_times(DType::float32, 16384, false)},
           Case{"long softmax of bfloat16", 2, softmax_times(DType::bfloat16, 50256, false)},
           Case{"long softmax backward", 3, softmax_times(DType::float32, 16384, true)},
           Case{"cross entropy", 1, cross_entropy_times(DType::float32, 1000, false)},
           Case{"cross entropy backward", 2, cross_entropy_times(DType::float32, 1000, true)},
           Case{"cross entropy backward, unaligned rows", 2,
                cross_entropy_times(DType::bfloat16, 50257, true)},
           // aligned packs that overlap the thread's eight numbers: the cache has the second half
           Case{"cross entropy, unaligned rows", 2,
                cross_entropy_times(DType::bfloat16, 50257, false)},
           Case{"norm", 2, norm_times(64, 768)},
       }) {
    INFO(c.name << ": " << c.times << " times x");
    CHECK(c.times >= 0.99 * c.least);
    CHECK(c.times <= 1.1 * c.least);  // statistics and labels
  }
}

TEST_CASE("cuda norm: the backward of rows touches x, dy and dx once",
          "[cuda_kernels][norm][profile]") {
  NEEDS_DEVICE;
  for (const auto& [t, n] : {std::pair{DType::bfloat16, std::int64_t{768}},
                             {DType::float32, std::int64_t{768}},
                             {DType::float32, std::int64_t{8192}}}) {
    INFO(t << ", rows of " << n);
    constexpr std::int64_t rows = 24;
    const DType sums = size_of(t) == 2 ? DType::float32 : t;
    Buffer x(t, rows * n), dy(t, rows * n), dx(t, rows * n), weight(t, n), dweight(t, n),
        dbias(t, n), mean(sums, rows), rstd(sums, rows);
    for (Buffer* b : {&x, &dy, &weight, &mean, &rstd}) b->pattern(1);
    const Profile profile;
    kernels().norm_rows_backward(
        {t, true, x.data(), weight.data(), mean.data(), rstd.data(), dy.data(), dx.data(),
         dweight.data(), dbias.data(), rows, n, 1, 1},
        stream());
    stream().synchronize();
    INFO(profile.table());
    const auto sectors = [](std::int64_t numbers, DType of) {
      return static_cast<std::uint64_t>(numbers) * size_of(of) / 32;
    };
    const std::uint64_t once = sectors(x.size(), t);
    // each block's sums are read by the last block of a chain, and the eight chains' by the last
    const std::int64_t blocks = n <= 1024 ? rows / 8 : rows, chains = blocks < 8 ? blocks : 8;
    const std::uint64_t parts = sectors(blocks * 2 * n, sums),
                        joined = sectors(chains * 2 * n, sums);
    const auto copies = [&](const char* words) {
      const int line = line_of("../norm_rows_backward.cu", words);
      REQUIRE(line > 0);
      return profile.at("norm_rows_backward.cu", line, false).cost;
    };
    CHECK(copies("p.x + at, bytes") == once);
    CHECK(copies("p.dy + at, bytes") == once);
    CHECK(at(profile, "element.cuh", "simt::store_vector(p, pack)", false).cost == once + joined);
    // the weights of each row are loaded twice
    CHECK(at(profile, "element.cuh", "return simt::load_vector<Pack<T, N>>(p)", false).cost ==
          2 * once + parts + joined);
  }
}
#endif
