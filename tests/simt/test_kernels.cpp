// Correct kernels compared with loops in double, under every order of threads and blocks. The
// kernels of tests/ladder and of tests/cuda_kernels run this way too.
#include <cmath>

#include "kernels.hpp"
#include "support.hpp"

namespace braid::simt_tests {

namespace {

using Doubles = std::vector<double>;
std::size_t size(int a, int b = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

double worst(const std::vector<float>& got, const Doubles& want) {
  REQUIRE(got.size() == want.size());
  double error = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double e = std::abs(static_cast<double>(got[i]) - want[i]) / (1 + std::abs(want[i]));
    if (!(e <= error)) error = e;  // also true for a NaN
  }
  return error;
}

Doubles product(int m, int n, int k, const std::vector<float>& a, const std::vector<float>& b) {
  Doubles c(size(m, n));
  for (int i = 0; i < m; ++i)
    for (int p = 0; p < k; ++p)
      for (int j = 0; j < n; ++j)
        c[size(i, n) + size(j)] +=
            static_cast<double>(a[size(i, k) + size(p)]) * b[size(p, n) + size(j)];
  return c;
}

template <class T> std::vector<T> rounded(std::vector<float>& values) {
  std::vector<T> narrow;
  for (float& v : values) {
    narrow.emplace_back(v);
    v = static_cast<float>(narrow.back());
  }
  return narrow;
}

template <class T> void check_gemm_narrow(int m, int n, int k) {
  auto a = normal(size(m, k), 13), b = normal(size(k, n), 14);
  const DeviceArray<T> pa(rounded<T>(a)), pb(rounded<T>(b));
  const DeviceArray<float> c(size(m, n));
  gemm_narrow(m, n, k, pa, pb, c);
  CHECK(worst(c.get(), product(m, n, k, a, b)) <= 1e-5);
}

}  // namespace

TEST_CASE("simt: matrix products with tiles and edges, and on tensor cores", "[kernels]") {
  in_all_orders([] {
    for (const auto& [m, n, k] :
         {std::tuple{128, 128, 32}, {200, 136, 44}, {130, 67, 19}, {1, 1, 1}}) {
      INFO(m << "x" << n << "x" << k);
      const auto a = normal(size(m, k), 11), b = normal(size(k, n), 12);
      const DeviceArray<float> pa(a), pb(b), c(size(m, n));
      gemm_tiled(m, n, k, pa, pb, c);
      CHECK(worst(c.get(), product(m, n, k, a, b)) <= 1e-5);
    }
    check_gemm_narrow<simt::bfloat16_t>(128, 64, 48);
    check_gemm_narrow<simt::half_t>(64, 128, 32);
  });
}

TEST_CASE("simt: blocks on several host threads give the same results", "[kernels]") {
  const KeepConfig keep;
  const int m = 600, n = 136, k = 44;
  const auto a = normal(size(m, k), 19), b = normal(size(k, n), 20);
  const DeviceArray<float> pa(a), pb(b), one(size(m, n)), many(size(m, n));
  gemm_tiled(m, n, k, pa, pb, one);
  simt::set_checks(false);
  simt::set_workers(3);
  gemm_tiled(m, n, k, pa, pb, many);
  CHECK(worst(many.get(), product(m, n, k, a, b)) <= 1e-5);
  CHECK(one.get() == many.get());
}

}  // namespace braid::simt_tests
