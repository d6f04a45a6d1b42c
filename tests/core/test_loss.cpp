// Tests of cross_entropy and mse_loss: sizes, extreme values, invalid labels, empty tensors.
#include "reference/softmax.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Tensor labels(std::int64_t rows, std::int64_t classes, Device device = here()) {
  Numbers numbers(static_cast<std::uint64_t>(rows * 31 + classes));
  return strided({rows}, {1}, 0, DType::int64, device,
                 [&] { return static_cast<double>(numbers.integer(0, classes)); });
}

/// Computes (softmax - onehot) scale.
Array cross_entropy_gradient(const Array& x, const Array& y, double scale) {
  Array g = reference::softmax(x, 1);
  for (std::int64_t i = 0; i < y.size(); ++i)
    g[i * reference::at(x.shape, 1) + static_cast<std::int64_t>(y[i])] -= 1;
  return reference::map(g, [=](double v) { return v * scale; });
}

}  // namespace

TEST_CASE("cross_entropy: values and gradients at every size, type, device and number of threads",
          "[loss]") {
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes{
      {1, 1},   {1, 2},    {7, 3},     {64, 10}, {9, 17},   {33, 65},
      {5, 129}, {3, 1025}, {1000, 10}, {17, 8},  {2000, 33}};
  const KeepThreads keep;
  for (const Device device : test_devices())
    for (const DType t : floating_dtypes())
      for (const auto& [rows, classes] : sizes) {
        const Tensor x = random_tensor({rows, classes}, t, device, 5, -4, 4).requires_grad_(),
                     y = labels(rows, classes, device);
        const Array a = array_of(x), b = array_of(y);
        INFO(t << " on " << device << ", " << rows << " rows of " << classes);
        for (const bool take_mean : {true, false}) {
          set_num_threads(1);
          const Reduction r = take_mean ? Reduction::mean : Reduction::sum;
          const Tensor loss = cross_entropy(x, y, r);
          CHECK(loss.shape() == Shape{});
          CHECK(loss.dtype() == t);
          if (t != DType::float16 || take_mean || rows < 1000)
            CHECK_CLOSE(loss, reference::cross_entropy(a, b, take_mean),
                        (Tolerance{tolerance(t).rtol * 2, tolerance(t).atol}));
          const Tensor g = grad(loss, {x})[0];
          CHECK_CLOSE(g,
                      cross_entropy_gradient(a, b, take_mean ? 1.0 / static_cast<double>(rows) : 1),
                      tolerance(t));
          set_num_threads(3);
          const Tensor again = cross_entropy(x, y, r);
          CHECK_SAME_BITS(again, loss);
          CHECK_SAME_BITS(grad(again, {x})[0], g);
        }
      }
  CHECK_SAME_BITS(cross_entropy(random_tensor({4, 3}), labels(4, 3)),
                  cross_entropy(random_tensor({4, 3}), labels(4, 3), Reduction::mean));
}

TEST_CASE("losses: more labels than float16 can count", "[loss]") {
  const Tensor x = full({70000, 2}, -10.75, {.dtype = DType::float16, .requires_grad = true}),
               labels = zeros({70000}, {.dtype = DType::int64});
  CHECK(nll_loss(x, labels).item<double>() == Approx(10.75));
  CHECK(nll_loss(x, labels, {.ignore_index = -1}).dtype() == DType::float16);
  // LibTorch's order of the arguments
  const Tensor logits = random_tensor({4, 3}), of = tensor({0, 2, 1, 2}),
               weight = abs(random_tensor({3})) + 0.5;
  CHECK_SAME_BITS(nll_loss(logits, of, {}, Reduction::Sum),
                  nll_loss(logits, of, {.reduction = Reduction::sum}));
  CHECK_SAME_BITS(nll_loss(logits, of, weight, Reduction::None, 2),
                  nll_loss(logits, of, {Reduction::none, weight, 2}));
  CHECK_SAME_BITS(cross_entropy_loss(logits, of, weight, Reduction::Mean, 2, 0.1),
                  cross_entropy(logits, of, {Reduction::mean, weight, 2, 0.1}));
  const Tensor dx = grad(cross_entropy(x, labels), {x}, false, true)[0];
  const Tensor again = grad((dx * tensor({1.0, -1.0}).to(DType::float16)).sum(), {x})[0];
  CHECK(max(again).to(DType::float64).item<double>() == Approx(0.5 / 70000).epsilon(0.05));
}

TEST_CASE("cross_entropy: large logits do not overflow; empty batches", "[loss]") {
  const Tensor x = tensor({{1e4, 0.0}, {0.0, 1e4}}), a = tensor({0, 1}), b = tensor({1, 0}),
               none = zeros({0, 3}, {.requires_grad = true}),
               y = zeros({0}, {.dtype = DType::int64});
  check_lists({{cross_entropy(x, a), {0}},
               {cross_entropy(x, b), {1e4}},
               {cross_entropy(x, b, Reduction::sum), {2e4}},
               {cross_entropy(none, y, Reduction::sum), {0}}});
  CHECK(std::isnan(cross_entropy(tensor({{kNan, 0.0}}), tensor({1})).item<double>()));
  CHECK(std::isnan(cross_entropy(none, y).item<double>()));
  cross_entropy(none, y, Reduction::sum).backward();
  CHECK(none.grad().shape() == Shape{0, 3});
}

TEST_CASE("cross_entropy: labels outside the classes are refused before anything is written",
          "[loss][errors]") {
  const Tensor x = random_tensor({3, 4});
  for (const std::int64_t wrong :
       {std::int64_t{4}, std::int64_t{-1}, std::int64_t{-101}, std::int64_t{1} << 32, kMax, kMin})
    for (std::int64_t place = 0; place < 3; ++place) {
      std::vector<std::int64_t> v{0, 3, 1};
      v[static_cast<std::size_t>(place)] = wrong;
      INFO(wrong << " at " << place);
      CHECK_THROWS_TEXT(IndexError, str("cross_entropy: expected *0*4*got ", wrong),
                        awaited(cross_entropy(x, tensor(v))));
    }
}

TEST_CASE("mse_loss: values and gradients at every size, type, device and number of threads",
          "[loss]") {
  const KeepThreads keep;
  for (const Device device : test_devices())
    for (const DType t : floating_dtypes())
      for (const std::int64_t n :
           {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 129, 1000, 1025, 60}) {
        const Tensor x = random_tensor({n, 2}, t, device, 1, -1, 1).requires_grad_(),
                     y = random_tensor({n, 2}, t, device, 2, -1, 1).requires_grad_();
        const Array a = array_of(x), b = array_of(y);
        INFO(t << " on " << device << ", " << n);
        for (const bool take_mean : {true, false}) {
          set_num_threads(1);
          const Reduction r = take_mean ? Reduction::mean : Reduction::sum;
          const Tensor loss = mse_loss(x, y, r);
          CHECK(loss.dtype() == t);
          CHECK_CLOSE(loss, reference::mse_loss(a, b, take_mean), tolerance(t));
          const double scale = take_mean ? 1.0 / static_cast<double>(2 * n) : 1;
          const std::vector<Tensor> g = grad(loss, {x, y});
          const auto slope = [=](double p, double q) { return 2 * (p - q) * scale; };
          CHECK_CLOSE(g[0], reference::zip(a, b, slope), tolerance(t));
          CHECK_CLOSE(g[1], reference::zip(b, a, slope), tolerance(t));
          set_num_threads(3);
          CHECK_SAME_BITS(mse_loss(x, y, r).detach(), loss.detach());
        }
      }
  const std::int64_t many = 70007;
  const Tensor big = random_tensor({many}), other = random_tensor({many}, DType::float32, {}, 2);
  const Array want = reference::mse_loss(array_of(big), array_of(other), true);
  CHECK_CLOSE(mse_loss(big, other), want, tolerance(DType::float32));
  CHECK_CLOSE(mse_loss(big.reshape({-1, 7}).t(), other.reshape({-1, 7}).t()), want,
              tolerance(DType::float32));
  // Empty tensors.
  CHECK(std::isnan(mse_loss(zeros({0}), zeros({0})).item<double>()));
  CHECK(mse_loss(zeros({0, 2}), zeros({0, 2}), Reduction::sum).item<double>() == 0);
}

TEST_CASE("cross_entropy: labels that changed are found, in the second derivative too",
          "[loss][errors]") {
  const Tensor x = random_tensor({3, 4}, DType::float64).requires_grad_(),
               scale = tensor(2.0, {.dtype = DType::float64}).requires_grad_();
  const Tensor labels = tensor({0, 3, 1});
  const Tensor dx = grad(cross_entropy(x, labels) * scale, {x}, true, true)[0];
  (void)grad(dx.sum(), {scale}, true);
  labels.fill_(2);
  CHECK_THROWS_TEXT(
      AutogradError,
      "backward: expected a saved tensor of shape [3] unchanged*saved by cross_entropy_backward",
      (void)grad(square(dx).sum(), {scale}));
}

TEST_CASE("cross_entropy: weights of classes that changed are found", "[loss][errors]") {
  const Tensor x = random_tensor({3, 4}).requires_grad_(), labels = tensor({0, 3, 1});
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    const Tensor weight = full({4}, 2.0);
    const Tensor loss = cross_entropy(x, labels, {.reduction = reduction, .weight = weight}).sum();
    (void)grad(loss, {x}, true);
    const Tensor dx = grad(loss, {x}, true, true)[0];
    weight.mul_(10);
    CHECK_THROWS_TEXT(AutogradError, "backward: expected a saved tensor of shape [4] unchanged*",
                      (void)grad(loss, {x}));
    CHECK_THROWS_TEXT(AutogradError, "backward: expected a saved tensor of shape [4] unchanged*",
                      (void)grad(square(dx).sum(), {x}));
  }
}

}  // namespace braid::test::on_device
