// Tests of softmax and log_softmax: sizes, dims, extreme values, errors.
#include "reference/softmax.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("softmax: agrees with the reference at every size, on every device and number of threads",
          "[softmax]") {
  const KeepThreads keep;
  for (const Device device : test_devices())
    for (const DType t : floating_dtypes())
      for (const std::int64_t n :
           {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 1025}) {
        const Tensor x = random_tensor({9, n}, t, device, static_cast<std::uint64_t>(n), -8, 8);
        const Array a = array_of(x);
        INFO(t << " on " << device << ", rows of " << n);
        set_num_threads(1);
        const Tensor y = softmax(x), z = log_softmax(x);
        CHECK_CLOSE(y, reference::softmax(a), tolerance(t));
        CHECK_CLOSE(z, reference::log_softmax(a), tolerance(t));
        CHECK_CLOSE(softmax(x, 0), reference::softmax(a, 0), tolerance(t));
        CHECK_SAME_BITS(log_softmax(x.t(), 0), z.t());
        set_num_threads(3);
        CHECK_SAME_BITS(softmax(x), y);
        CHECK_SAME_BITS(log_softmax(x), z);
      }
  // Many rows, and one very long one.
  for (const Sizes& shape : std::vector<Sizes>{{3000, 10}, {2, 40000}, {2, 3, 4, 33}}) {
    const Tensor x = random_tensor(shape);
    CHECK_CLOSE(softmax(x), reference::softmax(array_of(x)), tolerance(DType::float32));
    CHECK_CLOSE(softmax(x, 1), reference::softmax(array_of(x), 1), tolerance(DType::float32));
    CHECK_CLOSE(log_softmax(x), reference::log_softmax(array_of(x)), tolerance(DType::float32));
  }
}

TEST_CASE("softmax: large numbers do not overflow, small differences survive", "[softmax]") {
  for (const DType t : {DType::float32, DType::float64})
    for (const double shift : {0.0, 1e4, -1e4, 1e30, -1e30}) {
      const Tensor x = full({1, 4}, shift, {.dtype = t});
      INFO(t << " " << shift);
      CHECK_CLOSE(softmax(x), Array({1, 4}, 0.25), tolerance(t));
      CHECK_CLOSE(log_softmax(x), Array({1, 4}, -std::log(4.0)), tolerance(t));
    }
  const Tensor x = tensor({{1000.0, 0.0, -1000.0}}), near = tensor({{100.0, 100.5}});
  check_lists({{softmax(x), {1, 0, 0}}, {log_softmax(x), {0, -1000, -2000}}});
  CHECK_CLOSE(softmax(near), reference::softmax(array_of(near)), tolerance(DType::float32));
}

TEST_CASE("softmax: along every dim of every rank, contiguous", "[softmax][gradients]") {
  for (const std::int64_t dim : {0, -1}) {
    const Tensor x = tensor(3.0).requires_grad_(), y = softmax(x, dim);
    CHECK((y.dim() == 0 && y.item<double>() == 1 && log_softmax(x, dim).item<double>() == 0));
    y.backward();
    CHECK((x.grad().dim() == 0 && x.grad().item<double>() == 0));
  }
  CHECK_THROWS_TEXT(IndexError, "softmax: expected a dim in [-1, 0], got 1", softmax(ones({}), 1));
  for (const Sizes& sizes : {Sizes{2, 3, 4}, {2, 3, 1}, {0, 3, 2}})
    for (const std::int64_t dim : {0, 1, 2})
      for (const Tensor& x : {random_tensor(sizes), random_tensor(sizes).transpose(0, 2)})
        CHECK((softmax(x, dim).is_contiguous() && log_softmax(x, dim).is_contiguous()));
  const Tensor leaf = random_tensor({2, 3, 1}).requires_grad_();
  CHECK_NOTHROW(softmax(leaf, 1).add_(1));  // no view
}

TEST_CASE("softmax: infinities and NaN", "[softmax]") {
  for (const DType t : floating_dtypes())
    for (const std::int64_t n : {2, 8, 33, 130})
      for (const std::int64_t place : {std::int64_t{0}, n / 2, n - 1}) {
        INFO(t << ", " << place << " of " << n);
        Array v({2, n}, 1.0);
        v[place] = -kInf;  // row 0; row 1 does not change
        Array y = array_of(softmax(tensor_of(v, t))), z = array_of(log_softmax(tensor_of(v, t)));
        CHECK(y[place] == 0);
        CHECK(z[place] == -kInf);
        CHECK(y[(place + 1) % n] == Approx(1.0 / static_cast<double>(n - 1)).epsilon(0.01));
        v[place] = std::nan("");
        y = array_of(softmax(tensor_of(v, t)));
        z = array_of(log_softmax(tensor_of(v, t)));
        bool all = true, rest = false;
        for (std::int64_t i = 0; i < n; ++i) {
          all = all && std::isnan(y[i]) && std::isnan(z[i]);
          rest = rest || std::isnan(y[n + i]) || std::isnan(z[n + i]);
        }
        CHECK(all);
        CHECK_FALSE(rest);
        v[place] = kInf;
        CHECK(std::isnan(array_of(softmax(tensor_of(v, t)))[place]));
      }
  CHECK(std::isnan(list(softmax(full({1, 5}, -kInf)))[3]));
  CHECK(std::isnan(list(log_softmax(full({1, 5}, -kInf)))[3]));
}

TEST_CASE("softmax: empty ones", "[softmax]") {
  check_shapes({{softmax(zeros({0})), {0}},
                {softmax(zeros({0, 3})), {0, 3}},
                {softmax(zeros({3, 0})), {3, 0}},
                {log_softmax(zeros({2, 0, 3}), 1), {2, 0, 3}}});
  const Tensor x = zeros({0, 3}, {.requires_grad = true});
  softmax(x).sum().backward();
  CHECK(x.grad().shape() == Shape{0, 3});
}

TEST_CASE("softmax: rows sum to one and gradients to zero", "[softmax][gradients]") {
  const Tensor x = random_tensor({50, 77}, DType::float64).requires_grad_();
  const Tolerance allowed = tolerance(DType::float64);
  CHECK_CLOSE(softmax(x.detach()).sum({1}), Array({50}, 1.0), allowed);
  // dx = y (dy - Σ y dy) for a strided dy, at a size that is no multiple of vectors.
  const Tensor dy = random_tensor({77, 50}, DType::float64, {}, 5).t();
  const Array p = array_of(softmax(x.detach())), d = array_of(dy);
  const auto times = [](const Array& a, const Array& b) {
    return reference::zip(a, b, [](double u, double v) { return u * v; });
  };
  const auto minus = [](const Array& a, const Array& b) {
    return reference::zip(a, b, [](double u, double v) { return u - v; });
  };
  const Tensor g = pulled(softmax(x), {x}, dy)[0];
  CHECK_CLOSE(g, times(p, minus(d, reference::sum(times(p, d), {1}, true))), allowed);
  CHECK_CLOSE(g.sum({1}), Array({50}, 0.0), (Tolerance{0, 1e-14}));
  // For the logarithm: dy - exp(y) Σ dy.
  CHECK_CLOSE(pulled(log_softmax(x), {x}, dy)[0], minus(d, times(p, reference::sum(d, {1}, true))),
              allowed);
}

}  // namespace braid::test::on_device
