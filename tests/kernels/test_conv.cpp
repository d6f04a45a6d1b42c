// Checks convolutions large enough to be divided into tiles: Braid's own and, on the CPU, oneDNN's,
// against plain loops. Any number of threads must give the same bits.
#include <dlfcn.h>

#include <filesystem>
#include <thread>

#include <braid/core/internal/kernel_args/conv.hpp>

#include "cpu/gemm_library.hpp"
#include "kernels/kernel_support.hpp"
#include "support/on_device.hpp"

using namespace kernel_test;
using braid::ConvShape;

namespace {

const std::vector<ConvShape> kShapes{
    // n  in out groups  in_size   out_size  kernel  stride  pad     dilation
    // as in the benchmark's CNN
    {33, 1, 32, 1, {28, 28}, {26, 26}, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
    {9, 32, 64, 1, {13, 13}, {11, 11}, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
    // the last tile has another size; dW in parts of k, with groups
    {9, 6, 10, 2, {17, 15}, {9, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {3, 16, 16, 16, {12, 12}, {12, 12}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  // depthwise
    {5, 33, 17, 1, {9, 11}, {9, 11}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {2, 4, 5, 1, {20, 9}, {6, 9}, {3, 2}, {3, 1}, {1, 2}, {3, 4}},
    {1, 3, 2, 1, {1, 40}, {1, 19}, {1, 5}, {1, 2}, {0, 1}, {1, 1}},
    // "same" padding: more at the end than at the start
    {4, 8, 3, 1, {8, 8}, {7, 8}, {2, 4}, {1, 1}, {0, 1}, {1, 1}},
    // channels in eights: the aligned tiles of tensor cores
    {3, 40, 72, 1, {9, 10}, {5, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {2, 16, 48, 2, {11, 7}, {9, 7}, {3, 3}, {1, 1}, {1, 2}, {2, 2}},
    {2, 8, 136, 1, {12, 6}, {12, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    // large enough for the large tile of y, of dx and of dW
    {1, 8, 264, 1, {23, 23}, {23, 23}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {1, 264, 8, 1, {23, 23}, {23, 23}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {1, 64, 264, 1, {5, 5}, {3, 3}, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
    // y and dx in parts of k, with a bias for each group
    {1, 128, 16, 2, {5, 5}, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {1, 16, 128, 2, {5, 5}, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
};

/// The operands of one problem, x, weight, the biases of y and of dx, dy, and the results of the
/// three kernels. biased: dx has a bias, as in a transposed convolution.
struct Problem {
  ConvShape s;
  bool biased;
  Buffer x, weight, bias, bias_of_dx, dy, y, dx, dw, db;
  Problem(DType t, const ConvShape& shape, bool biased_dx = true)
      : s(shape),
        biased(biased_dx),
        x(t, s.n * s.in * s.in_size[0] * s.in_size[1]),
        weight(t, s.out * (s.in / s.groups) * s.kernel[0] * s.kernel[1]),
        bias(t, s.out),
        bias_of_dx(t, s.in),
        dy(t, s.n * s.out * s.out_size[0] * s.out_size[1]),
        y(t, dy.size()),
        dx(t, x.size()),
        dw(t, weight.size()),
        db(t, s.out) {
    x.pattern(1, 2), weight.pattern(2, 1), bias.pattern(3, 1), dy.pattern(4, 1);
    bias_of_dx.pattern(5, 1);
  }
  void run(DType t, bool library) {
    const bool before = braid::cpu::use_library_gemm(library);
    for (Buffer* b : {&y, &dx, &dw, &db}) b->fill(kNaN);  // every element must be written
    kernels().conv({t, x.data(), weight.data(), bias.data(), y.data(), s}, stream());
    const void* const plus = biased ? bias_of_dx.data() : nullptr;
    kernels().conv_backward_data({t, dy.data(), weight.data(), plus, dx.data(), s}, stream());
    kernels().conv_backward_weight({t, x.data(), dy.data(), dw.data(), db.data(), s}, stream());
    (void)braid::cpu::use_library_gemm(before);
  }
  [[nodiscard]] std::vector<std::vector<unsigned char>> bytes() const {
    return {y.bytes(), dx.bytes(), dw.bytes(), db.bytes()};
  }
};

/// The last rounding of a 16-bit result, relative.
double last_rounding(DType t) {
  return t == DType::float16 ? 0x1p-11 : t == DType::bfloat16 ? 0x1p-8 : 0;
}

/// Sums of terms, and of their magnitudes, by plain loops.
struct Sum {
  std::vector<double> value, size;
  std::vector<int> terms;
  explicit Sum(std::int64_t n)
      : value(static_cast<std::size_t>(n)), size(value), terms(value.size(), 0) {}
  void add(std::int64_t at, double v) {
    const auto i = static_cast<std::size_t>(at);
    value[i] += v, size[i] += std::fabs(v), ++terms[i];
  }
  /// `error`: relative, of each term.
  [[nodiscard]] bool holds(const Buffer& got, DType t, double error = 0) const {
    for (std::int64_t i = 0; i < got.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double bound =
          ((terms[at] + 3) * (t == DType::float64 ? 2 * 0x1p-53 : 0x1p-24) + error) * size[at] +
          1.001 * last_rounding(t) * std::fabs(value[at]);
      if (!(std::fabs(got[i] - value[at]) <= bound)) {
        FAIL_CHECK("element " << i << ": expected " << value[at] << ", got " << got[i] << ", bound "
                              << bound);
        return false;
      }
    }
    return true;
  }
};

struct Expected {
  Sum y, dx, dw, db;
  explicit Expected(const Problem& p)
      : y(p.y.size()), dx(p.dx.size()), dw(p.dw.size()), db(p.db.size()) {
    const ConvShape& s = p.s;
    const std::int64_t in = s.in / s.groups, out = s.out / s.groups;
    for (std::int64_t i = 0; p.biased && i < p.dx.size(); ++i) dx.add(i, p.bias_of_dx[i % s.in]);
    for (std::int64_t n = 0; n < s.n; ++n)
      for (std::int64_t h = 0; h < s.out_size[0]; ++h)
        for (std::int64_t w = 0; w < s.out_size[1]; ++w) {
          const std::int64_t to = ((n * s.out_size[0] + h) * s.out_size[1] + w) * s.out;
          for (std::int64_t o = 0; o < s.out; ++o)
            y.add(to + o, p.bias[o]), db.add(o, p.dy[to + o]);
          for (std::int64_t i = 0; i < s.kernel[0]; ++i)
            for (std::int64_t j = 0; j < s.kernel[1]; ++j) {
              const std::int64_t a = h * s.stride[0] - s.pad[0] + i * s.dilation[0],
                                 b = w * s.stride[1] - s.pad[1] + j * s.dilation[1];
              if (a < 0 || b < 0 || a >= s.in_size[0] || b >= s.in_size[1]) continue;
              const std::int64_t from = ((n * s.in_size[0] + a) * s.in_size[1] + b) * s.in;
              for (std::int64_t o = 0; o < s.out; ++o)
                for (std::int64_t c = 0; c < in; ++c) {
                  const std::int64_t of_x = from + o / out * in + c,
                                     of_w = ((o * in + c) * s.kernel[0] + i) * s.kernel[1] + j;
                  y.add(to + o, p.x[of_x] * p.weight[of_w]);
                  dx.add(of_x, p.dy[to + o] * p.weight[of_w]);
                  dw.add(of_w, p.dy[to + o] * p.x[of_x]);
                }
            }
        }
  }
};

}  // namespace

TEST_CASE("conv: the three kernels against plain loops, by oneDNN and by our own loops",
          "[kernels][conv]") {
  NEEDS_DEVICE;
  std::size_t number = 0;
  for (const auto& [t, precision] : floats_by_precision())
    for (std::size_t i = on_cuda() ? 2 : 0; i < kShapes.size(); ++i) {
      if (!braid::test::in_part(number++)) continue;
      const PrecisionGuard guard(precision);
      const bool narrow = t == DType::float16 || t == DType::bfloat16;
      if (narrow && !on_cuda()) continue;  // the CPU has kernels for float32 and float64
      Problem problem(t, kShapes[i], number % 2 == 0);
      const Expected expected(problem);
      for (const bool library : {true, false}) {
        if (library && (on_cuda() || t == DType::float64)) continue;
        INFO("shape " << i << ", " << braid::name_of(t)
                      << (library ? ", with the library" : ", without"));
        problem.run(t, library);
        const double error = product_error(precision);
        CHECK(expected.y.holds(problem.y, t, error));
        CHECK(expected.dx.holds(problem.dx, t, error));
        CHECK(expected.dw.holds(problem.dw, t, error));
        CHECK(expected.db.holds(problem.db, t));
      }
    }
}

TEST_CASE("conv: sums of integers are exact, then rounded once", "[kernels][conv]") {
  NEEDS_DEVICE;
  std::size_t number = 0;
  for (const auto& [t, precision] : floats_by_precision())
    for (std::size_t i = 2; i < kShapes.size(); ++i) {  // the first two are large
      if (!braid::test::in_part(number++)) continue;
      if (size_of(t) == 2 && !on_cuda()) continue;  // the CPU has kernels for float32 and float64
      const PrecisionGuard guard(precision);
      Problem problem(t, kShapes[i], number % 2 == 0);
      std::int64_t k = 0;
      for (Buffer* b :
           {&problem.x, &problem.weight, &problem.bias, &problem.bias_of_dx, &problem.dy})
        for (std::int64_t j = 0; j < b->size(); ++j)
          b->put(j, static_cast<double>(k++ * 7919 % 5 - 2));
      const Expected expected(problem);
      INFO("shape " << i << ", " << braid::name_of(t));
      problem.run(t, !on_cuda() && t == DType::float32);
      // clang 14 captures no structured binding by reference
      const auto wrong = [t = t](const Buffer& got, const Sum& sums) {
        Buffer rounded(t, 1);
        std::int64_t count = 0;
        for (std::int64_t j = 0; j < got.size(); ++j) {
          rounded.put(0, sums.value[static_cast<std::size_t>(j)]);
          count += got[j] != rounded[0];
        }
        return count;
      };
      CHECK(wrong(problem.y, expected.y) == 0);
      CHECK(wrong(problem.dx, expected.dx) == 0);
      CHECK(wrong(problem.dw, expected.dw) == 0);
      CHECK(wrong(problem.db, expected.db) == 0);
    }
}

TEST_CASE("conv: the same bits for any number of threads, and again", "[kernels][conv][threads]") {
  if (on_cuda()) return;
  const int before = braid::num_threads();
  std::size_t number = 0;
  for (const bool library : {true, false})
    for (const ConvShape& s : kShapes) {
      if (!braid::test::in_part(number++)) continue;
      std::vector<std::vector<unsigned char>> first;
      for (const int threads : {1, 2, 3, 2}) {
        braid::set_num_threads(threads);
        Problem problem(DType::float32, s);
        problem.run(DType::float32, library);
        if (first.empty()) first = problem.bytes();
        CHECK(problem.bytes() == first);
      }
    }
  braid::set_num_threads(before);
}

TEST_CASE("conv: more shapes than a thread keeps primitives for", "[kernels][conv]") {
  NEEDS_DEVICE;
  for (std::int64_t width = 3; width < 80; ++width) {
    Problem problem(DType::float32,
                    {1, 2, 2, 1, {1, width}, {1, width - 2}, {1, 3}, {1, 1}, {0, 0}, {1, 1}});
    problem.run(DType::float32, true);
    const Expected expected(problem);
    CHECK(expected.y.holds(problem.y, DType::float32));
  }
}

// OpenMP threads spin: two of them on one core make a product a hundred times slower.
TEST_CASE("oneDNN starts no thread and leaves the program's OpenMP count",
          "[kernels][conv][gemm][threads]") {
  if (on_cuda() || !braid::cpu::library_gemm_available()) return;
  const auto count = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (count == nullptr || set == nullptr) return;  // oneDNN without OpenMP
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const int before = braid::num_threads();
  // On a new thread: OpenMP keeps separate workers and a separate count for each thread.
  std::thread([&] {
    for (const int ours : {1, 2}) {
      braid::set_num_threads(ours);
      Problem problem(DType::float32, kShapes[0]);
      problem.run(DType::float32, false);  // starts Braid's own threads
      const auto started = threads();
      set(3);
      problem.run(DType::float32, true);
      for (const bool turned : {false, true}) {
        constexpr std::int64_t n = 300;
        Buffer a(DType::float32, n * n), b(DType::float32, n * n), c(DType::float32, n * n);
        a.pattern(1, 2), b.pattern(2, 1);
        const auto* const left = static_cast<const float*>(a.data());
        const auto* const right = static_cast<const float*>(b.data());
        CHECK(braid::cpu::library_gemm({false, turned, false, n, n, n, left, n, right, n,
                                        static_cast<float*>(c.data()), n, nullptr}));
      }
      CHECK(threads() == started);
      CHECK(count() == 3);
    }
  }).join();
  braid::set_num_threads(before);
}
