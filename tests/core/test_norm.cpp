// Tests of normalisations beyond the table of ops: sizes that are not multiples of tiles, threads,
// running statistics, NaN, and the agreement of both forms of each backward pass.
#include <thread>

#include "reference/norm.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

using Norm = std::function<Tensor(T x, T weight, T bias)>;

/// Compares the gradients of the fused kernels with those of recorded ops, which create_graph
/// selects. 1 and 3 threads must give the same bits.
void check_backward(const std::string& name, const Norm& norm, const Shape& shape,
                    const Shape& affine) {
  const KeepThreads keep;
  for (const DType t : {DType::float32, DType::float64}) {
    const Tensor x = random_tensor(sizes_of(shape), t, here(), 1),
                 w = random_tensor(sizes_of(affine), t, here(), 2),
                 b = random_tensor(sizes_of(affine), t, here(), 3);
    for (const Tensor& leaf : {x, w, b}) leaf.requires_grad_();
    const Tensor dy = random_tensor(sizes_of(shape), t, here(), 4);
    const auto gradients = [&](bool create_graph) {
      return pulled(norm(x, w, b), {x, w, b}, dy, create_graph);
    };
    set_num_threads(1);
    const std::vector<Tensor> fused = gradients(false), composed = gradients(true);
    set_num_threads(thread_counts({1, 3}).back());
    const std::vector<Tensor> again = gradients(false);
    const double rounding = t == DType::float64 ? 1e-16 : 6e-8,
                 terms = static_cast<double>(x.numel() / affine.numel());
    for (std::size_t i = 0; i < fused.size(); ++i) {
      INFO(name << " " << shape << " " << t << ", gradient " << i);
      CHECK(allclose(fused[i], composed[i].detach(), 1e3 * rounding,
                     40 * rounding * (10 + std::sqrt(terms))));
      CHECK_SAME_BITS(again[i], fused[i]);
    }
  }
}

}  // namespace

TEST_CASE("norm: agrees with the reference at every size and number of threads", "[norm]") {
  const KeepThreads keep;
  for (const DType t : floating_dtypes())
    for (const std::int64_t n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 129, 1025}) {
      const Tensor x = random_tensor({5, n}, t, here(), static_cast<std::uint64_t>(n), -3, 5),
                   w = random_tensor({n}, t, here(), 2), b = random_tensor({n}, t, here(), 3);
      const Array a = array_of(x), weight = array_of(w), bias = array_of(b);
      INFO(t << ", rows of " << n);
      set_num_threads(1);
      const Tensor y = layer_norm(x, {n}, w, b), r = rms_norm(x, {n}, w, 1e-5),
                   c = batch_norm(x, Tensor(), Tensor(), w, b, true);
      CHECK_CLOSE(y, reference::layer_norm(a, 1, &weight, &bias, true, 1e-5), tolerance(t));
      CHECK_CLOSE(r, reference::layer_norm(a, 1, &weight, nullptr, false, 1e-5), tolerance(t));
      CHECK_CLOSE(c, reference::batch_norm(a, &weight, &bias, 1e-5), tolerance(t));
      set_num_threads(thread_counts({1, 3}).back());
      CHECK_SAME_BITS(layer_norm(x, {n}, w, b), y);
      CHECK_SAME_BITS(rms_norm(x, {n}, w, 1e-5), r);
      CHECK_SAME_BITS(batch_norm(x, Tensor(), Tensor(), w, b, true), c);
    }
}

TEST_CASE("norm: a far mean costs no accuracy", "[norm]") {
  const Tensor x = random_tensor({3, 64}, DType::float32, here(), 5) + 1000.0;
  CHECK_CLOSE(layer_norm(x, {64}),
              reference::layer_norm(array_of(x), 1, nullptr, nullptr, true, 1e-5),
              (Tolerance{1e-4, 1e-4}));
  CHECK_CLOSE(batch_norm(x.t(), Tensor(), Tensor(), {}, {}, true),
              reference::batch_norm(array_of(x.t()), nullptr, nullptr, 1e-5),
              (Tolerance{1e-4, 1e-4}));
}

TEST_CASE("norm: the fused gradients are those of recorded ops", "[norm][gradients]") {
  const Norm layer = [](T x, T w, T b) { return layer_norm(x, w.shape(), w, b); },
             rms = [](T x, T w, T b) { return rms_norm(x, w.shape(), w, 1e-5) + 0 * b; },
             group2 = [](T x, T w, T b) { return group_norm(x, 2, w, b); },
             group3 = [](T x, T w, T b) { return group_norm(x, 3, w, b); },
             batch = [](T x, T w, T b) { return batch_norm(x, Tensor(), Tensor(), w, b, true); };
  for (const std::int64_t rows : {1, 3, 17, 70}) {
    check_backward("layer_norm", layer, {rows, 33}, {33});
    check_backward("rms_norm", rms, {rows, 33}, {33});
    check_backward("group_norm", group2, {rows, 6, 11}, {6});
    check_backward("group_norm", group3, {rows, 6}, {6});
    if (rows > 1) check_backward("batch_norm", batch, {rows, 37}, {37});
    check_backward("batch_norm", batch, {rows, 5, 9}, {5});
  }
  check_backward("layer_norm", layer, {3, 1300}, {1300});
  check_backward("layer_norm", layer, {cut(3, 2), cut(9000, 8200)}, {cut(9000, 8200)});
}

TEST_CASE("norm: recorded gradients have the shapes of weight and bias", "[norm][gradients]") {
  const Tensor x = random_tensor({2, 3, 4}).requires_grad_(),
               w = random_tensor({3, 4}).requires_grad_(),
               b = random_tensor({3, 4}).requires_grad_();
  for (const Tensor& g : grad(layer_norm(x, {3, 4}, w, b).sum(), {w, b}, false, true))
    CHECK(g.shape() == Shape{3, 4});
}

TEST_CASE("norm: rms_norm without eps adds that of the dtype of its statistics", "[norm]") {
  for (const DType t : floating_dtypes()) {
    const double eps = t == DType::float64 ? 0x1p-52 : 0x1p-23;
    const Tensor x = full({2, 4}, t == DType::float64 ? 1e-9 : 1e-3, {.dtype = t});
    CHECK_SAME_BITS(rms_norm(x, {4}), rms_norm(x, {4}, {}, eps));
  }
}

TEST_CASE("norm: nothing to normalise", "[norm]") {
  for (const Shape& shape : {Shape{0, 4}, Shape{0, 4, 3}, Shape{2, 4, 0}}) {
    const Tensor x = braid::ones(shape, {.device = here()}).requires_grad_(),
                 w = ones({4}).requires_grad_();
    INFO(shape);
    const Tensor y = shape == Shape{0, 4} ? layer_norm(x, {4}, w) : group_norm(x, 2, w);
    CHECK(y.shape() == shape);
    y.sum().backward();
    CHECK(x.grad().shape() == shape);
    CHECK(list(w.grad()) == List(4, 0));
  }
  // A batch without values changes no statistics.
  const Tensor x = zeros({0, 4, 2}).requires_grad_(), w = ones({4}).requires_grad_(),
               mean = zeros({4}), var = ones({4});
  const Tensor y = batch_norm(x, mean, var, w, ones({4}), true);
  CHECK((y.shape() == x.shape() && y.dtype() == x.dtype()));
  y.sum().backward();
  CHECK(x.grad().shape() == x.shape());
  CHECK(list(w.grad()) == List(4, 0));
  CHECK((list(mean) == List(4, 0) && list(var) == List(4, 1)));
}

TEST_CASE("batch norm: running statistics as PyTorch keeps them", "[norm]") {
  const Tensor x = random_tensor({6, 3}, DType::float32, here(), 7), mean = zeros({3}),
               var = ones({3}), batches = zeros({}, {.dtype = DType::int64});
  const Array a = array_of(x);
  /// Checks the statistics after a step with weight `factor` from these start values.
  const auto check = [&](double factor, double start_mean, double start_var) {
    Array m({3}), v({3});
    for (std::int64_t c = 0; c < 3; ++c) {
      double sum = 0, squares = 0;
      for (std::int64_t r = 0; r < 6; ++r) sum += a[3 * r + c] / 6;
      for (std::int64_t r = 0; r < 6; ++r)
        squares += (a[3 * r + c] - sum) * (a[3 * r + c] - sum) / 5;
      m[c] = (1 - factor) * start_mean + factor * sum;
      v[c] = (1 - factor) * start_var + factor * squares;
    }
    CHECK_CLOSE(mean, m, tolerance(DType::float32));
    CHECK_CLOSE(var, v, tolerance(DType::float32));
  };
  const std::uint64_t version = mean.version();
  (void)batch_norm(x, RunningStatistics{mean, var, batches, 0.1}, {}, {}, true);
  check(0.1, 0, 1);
  CHECK(batches.item<int>() == 1);
  CHECK(mean.version() > version);
  // Without momentum: the mean over all batches. The first batch replaces the old values.
  mean.fill_(9), var.fill_(9), batches.fill_(0);
  for (int step = 1; step <= 3; ++step) {
    (void)batch_norm(x, RunningStatistics{mean, var, batches, {}}, {}, {}, true);
    check(1, 0, 0);
    CHECK(batches.item<int>() == step);
  }
  // Evaluation and rejected calls change nothing.
  const Tensor before = mean.clone();
  (void)batch_norm(x, mean, var);
  CHECK_THROWS_AS(batch_norm(x[0].unsqueeze(0), mean, var, {}, {}, true), ArgumentError);
  CHECK_SAME_BITS(mean, before);
}

TEST_CASE("batch norm: many threads, one step after the other", "[norm]") {
  const Tensor x = ones({4, 2}), mean = zeros({2}), var = ones({2}),
               batches = zeros({}, {.dtype = DType::int64});
  const int threads = 4, steps = static_cast<int>(cut(200, 4));
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&] {
      for (int s = 0; s < steps; ++s)
        (void)batch_norm(x, RunningStatistics{mean, var, batches, 0.5}, {}, {}, true);
    });
  for (std::thread& t : workers) t.join();
  CHECK(batches.item<int>() == threads * steps);  // no step is lost
  CHECK(std::fabs(list(mean)[0] - (1 - std::pow(0.5, threads * steps))) < 1e-6);
}

}  // namespace braid::test::on_device
