// The kernels against plain loops in double, in every order of threads and blocks.
#include <cmath>

#include "kernels.hpp"
#include "simt/half.hpp"
#include "support.hpp"
#include "support/catch.hpp"

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
    if (!(e <= error)) error = e;  // a NaN counts
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

}  // namespace

TEST_CASE("simt: elementwise add", "[simt][kernels]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    for (int n : {1, 3, 1024, 5003}) {
      const auto a = normal(size(n), 1), b = normal(size(n), 2);
      const DeviceArray<float> da(a), db(b), dc(size(n));
      add(n, da.data(), db.data(), dc.data());
      Doubles want(size(n));
      for (std::size_t i = 0; i < want.size(); ++i) want[i] = static_cast<double>(a[i]) + b[i];
      CHECK(worst(dc.get(), want) <= 1e-6);
    }
  });
}

TEST_CASE("simt: softmax of rows", "[simt][kernels]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    const int rows = 9, cols = 1000;
    const auto x = normal(size(rows, cols), 3);
    const DeviceArray<float> dx(x), dy(x.size());
    softmax(rows, cols, dx.data(), dy.data());
    Doubles want(x.size());
    for (int r = 0; r < rows; ++r) {
      const float* row = x.data() + size(r, cols);
      double most = -1e30, sum = 0;
      for (int c = 0; c < cols; ++c) most = std::max<double>(most, row[c]);
      for (int c = 0; c < cols; ++c) sum += std::exp(row[c] - most);
      for (int c = 0; c < cols; ++c) want[size(r, cols) + size(c)] = std::exp(row[c] - most) / sum;
    }
    CHECK(worst(dy.get(), want) <= 1e-5);
  });
}

TEST_CASE("simt: layer norm, forward and backward", "[simt][kernels]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    const int rows = 13, cols = 300;
    const float eps = 1e-5f;
    const auto x = normal(size(rows, cols), 4), gain = normal(size(cols), 5),
               bias = normal(size(cols), 6), dy = normal(size(rows, cols), 7);
    const std::vector<float> zeros(size(cols));
    const DeviceArray<float> px(x), pgain(gain), pbias(bias), pdy(dy), py(x.size()),
        pmean(size(rows)), prstd(size(rows)), pdx(x.size()), pdgain(zeros), pdbias(zeros);
    layernorm(rows, cols, px.data(), pgain.data(), pbias.data(), eps, py.data(), pmean.data(),
              prstd.data());
    layernorm_backward(rows, cols, pdy.data(), px.data(), pgain.data(), pmean.data(), prstd.data(),
                       pdx.data(), pdgain.data(), pdbias.data());
    Doubles y(x.size()), dx(x.size()), dgain(size(cols)), dbias(size(cols));
    for (int r = 0; r < rows; ++r) {
      double mean = 0, variance = 0, s1 = 0, s2 = 0;
      const std::size_t at = size(r, cols);
      for (std::size_t c = 0; c < size(cols); ++c) mean += x[at + c];
      mean /= cols;
      for (std::size_t c = 0; c < size(cols); ++c)
        variance += (x[at + c] - mean) * (x[at + c] - mean);
      const double rstd = 1 / std::sqrt(variance / cols + eps);
      for (std::size_t c = 0; c < size(cols); ++c) {
        const double xh = (x[at + c] - mean) * rstd, d = static_cast<double>(dy[at + c]) * gain[c];
        y[at + c] = xh * gain[c] + bias[c];
        s1 += d;
        s2 += d * xh;
        dgain[c] += dy[at + c] * xh;
        dbias[c] += dy[at + c];
      }
      for (std::size_t c = 0; c < size(cols); ++c) {
        const double xh = (x[at + c] - mean) * rstd;
        dx[at + c] =
            rstd * (static_cast<double>(dy[at + c]) * gain[c] - s1 / cols - xh * s2 / cols);
      }
    }
    CHECK(worst(py.get(), y) <= 1e-5);
    CHECK(worst(pdx.get(), dx) <= 1e-5);
    CHECK(worst(pdgain.get(), dgain) <= 1e-5);
    CHECK(worst(pdbias.get(), dbias) <= 1e-5);
  });
}

TEST_CASE("simt: column sums, embedding gradients, and a sum by the last block",
          "[simt][kernels]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    {
      const int rows = 77, cols = 100;
      const auto x = normal(size(rows, cols), 8);
      const DeviceArray<float> px(x), py(size(cols));
      column_sum(rows, cols, px.data(), py.data());
      Doubles want(size(cols));
      for (std::size_t i = 0; i < x.size(); ++i) want[i % want.size()] += x[i];
      CHECK(worst(py.get(), want) <= 1e-5);
    }
    {
      const int n = 200, dim = 24, words = 11;
      const auto dy = normal(size(n, dim), 9);
      std::vector<int> index(size(n));
      for (std::size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int>(i * 7 % words);
      const DeviceArray<int> pindex(index);
      const DeviceArray<float> pdy(dy), pdw(std::vector<float>(size(words, dim)));
      embedding_backward(n, dim, pindex.data(), pdy.data(), pdw.data());
      Doubles want(size(words, dim));
      for (std::size_t i = 0; i < dy.size(); ++i)
        want[size(index[i / dim], dim) + i % dim] += dy[i];
      CHECK(worst(pdw.get(), want) <= 1e-5);
    }
    for (int n : {1, 5000}) {
      const auto x = normal(size(n), 10);
      const DeviceArray<float> px(x), parts(20), sum(1);
      const DeviceArray<unsigned> counter(std::vector<unsigned>{0});
      for (int twice = 0; twice < 2; ++twice)
        last_block_sum(n, px.data(), parts.data(), counter.data(), sum.data());
      Doubles want(1);
      for (float v : x) want[0] += v;
      CHECK(worst(sum.get(), want) <= 1e-4);
      CHECK(counter.get() == std::vector<unsigned>{0});
    }
  });
}

TEST_CASE("simt: matrix products with tiles, edges and cp.async", "[simt][kernels]") {
  in_all_orders([](const std::string& order) {
    for (const auto& [m, n, k] :
         {std::tuple{128, 128, 32}, {200, 136, 44}, {130, 67, 19}, {1, 1, 1}}) {
      INFO(order << ", " << m << "x" << n << "x" << k);
      const auto a = normal(size(m, k), 11), b = normal(size(k, n), 12);
      const DeviceArray<float> pa(a), pb(b), tiled(size(m, n)), textbook(size(m, n)),
          async(size(m, n));
      const Doubles want = product(m, n, k, a, b);
      gemm_tiled(m, n, k, pa.data(), pb.data(), tiled.data());
      CHECK(worst(tiled.get(), want) <= 1e-5);
      gemm_textbook(m, n, k, pa.data(), pb.data(), textbook.data());
      CHECK(worst(textbook.get(), want) <= 1e-5);
      if (n % 4 != 0 || k % 4 != 0) continue;
      gemm_async(m, n, k, pa.data(), pb.data(), async.data());
      CHECK(worst(async.get(), want) <= 1e-5);
    }
  });
}

TEST_CASE("simt: matrix products on tensor cores", "[simt][kernels]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    {
      const int m = 128, n = 64, k = 48;
      auto a = normal(size(m, k), 13), b = normal(size(k, n), 14);
      const DeviceArray<simt::bfloat16_t> pa(rounded<simt::bfloat16_t>(a)),
          pb(rounded<simt::bfloat16_t>(b));
      const DeviceArray<float> c(size(m, n));
      gemm_bfloat16(m, n, k, pa.data(), pb.data(), c.data());
      CHECK(worst(c.get(), product(m, n, k, a, b)) <= 1e-5);
    }
    {
      const int m = 64, n = 128, k = 32;
      auto a = normal(size(m, k), 15), b = normal(size(k, n), 16);
      const DeviceArray<simt::half_t> pa(rounded<simt::half_t>(a)), pb(rounded<simt::half_t>(b));
      const DeviceArray<float> c(size(m, n));
      gemm_float16(m, n, k, pa.data(), pb.data(), c.data());
      CHECK(worst(c.get(), product(m, n, k, a, b)) <= 1e-5);
    }
    {
      const int m = 32, n = 24, k = 40;
      const auto a = normal(size(m, k), 17), b = normal(size(k, n), 18);
      const DeviceArray<float> pa(a), pb(b), c(size(m, n));
      gemm_tf32(m, n, k, pa.data(), pb.data(), c.data());
      CHECK(worst(c.get(), product(m, n, k, a, b)) <= 5e-3);  // 10 bits of mantissa
    }
  });
}

TEST_CASE("simt: blocks on several host threads give the same results", "[simt][kernels]") {
  const KeepConfig keep;
  const int m = 200, n = 136, k = 44, rows = 40, cols = 100;
  const auto a = normal(size(m, k), 19), b = normal(size(k, n), 20),
             x = normal(size(rows, cols), 21);
  const DeviceArray<float> pa(a), pb(b), px(x), c(size(m, n)), one(x.size()), many(x.size());
  softmax(rows, cols, px.data(), one.data());
  simt::set_checks(false);
  simt::set_workers(3);
  gemm_textbook(m, n, k, pa.data(), pb.data(), c.data());
  softmax(rows, cols, px.data(), many.data());
  CHECK(worst(c.get(), product(m, n, k, a, b)) <= 1e-5);
  CHECK(one.get() == many.get());
}

}  // namespace braid::simt_tests
