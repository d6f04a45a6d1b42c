// BatchNorm, Dropout and capsules in DataParallel: whose statistics stay, and that a split changes
// no mask and no routing.
#include <braid/nn/dropout.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/sequential.hpp>
#include <braid/parallel/data_parallel.hpp>

#include <tuple>

#include <braid/core/ops/join.hpp>
#include <braid/nn/attention.hpp>
#include <braid/nn/capsule.hpp>

#include "group.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;

namespace {

/// Dropouts of the batch's rows, of rows folded into another axis, of channels.
struct Dropping : nn::Module {
  nn::Dropout first{0.25}, second{0.5};
  nn::Dropout1d channels{0.5};
  bool folds = true;  // where the batch is dim 0
  Tensor operator()(const Tensor& x) const {
    const Tensor a = second(first(x));
    return channels(folds ? second(a.reshape({-1, x.shape().back()})).reshape(x.shape()) : a);
  }
  BRAID_FIELDS(first, second, channels)
};

}  // namespace

TEST_CASE(
    "8.6, T26: BatchNorm: each replica by its own chunk; the running statistics are those of "
    "replica 0's",
    "[parallel][data_parallel]") {
  const Tensor x = random_tensor({24, 3}, DType::float32, device(0), 5);
  for (int n = 1; n <= device_count(); ++n) {
    nn::BatchNorm1d alone = home(nn::BatchNorm1d(3)), chunk = clone(alone);
    const DataParallel model(clone(alone), group(n));
    const Tensor mean_before = model.module.running_mean;
    const Tensor y = model(x);
    const std::int64_t rows = (24 + n - 1) / n;
    std::vector<Tensor> expected;
    for (std::int64_t at = 0; at < 24; at += rows)
      expected.push_back((at == 0 ? chunk : alone)(x.narrow(0, at, std::min(rows, 24 - at))));
    INFO(n << " devices");
    CHECK_SAME_BITS(y, cat(expected));
    CHECK(model.module.running_mean.id() == mean_before.id());
    CHECK_SAME_BITS(model.module.running_mean, chunk.running_mean);
    CHECK_SAME_BITS(model.module.running_var, chunk.running_var);
    CHECK(model.module.num_batches_tracked.item<int>() == 1);
    (void)model(x);
    CHECK(model.module.num_batches_tracked.item<int>() == 2);
    // What the other devices hold is fresh in the next forward: evaluation there is by the new
    // statistics.
    DataParallel evaluated(clone(model.module), group(n));
    eval(evaluated);
    nn::BatchNorm1d plain = clone(model.module);
    eval(plain);
    CHECK_SAME_BITS(evaluated(x), plain(x));
  }
}

TEST_CASE("T26: BatchNorm's replicas have their buffers on their devices",
          "[parallel][replicate]") {
  for (int n = 1; n <= device_count(); ++n) {
    const nn::BatchNorm1d layer = home(nn::BatchNorm1d(4));
    const auto replicas = parallel::replicate(layer, group(n));
    for (int i = 0; i < n; ++i) {
      const nn::BatchNorm1d& r = replicas[static_cast<std::size_t>(i)];
      for (const Tensor& t :
           {Tensor(r.running_mean), Tensor(r.running_var), Tensor(r.num_batches_tracked)})
        CHECK(t.device() == device(i));
      (void)r(ones({2, 4}, {.device = device(i)}));
    }
    CHECK(layer.num_batches_tracked.item<int>() == 1);
  }
}

TEST_CASE("Dropout: the same bits for every number of devices, and as without DataParallel",
          "[parallel][data_parallel][random]") {
  for (const int dim : {0, 1}) {
    const Tensor x = random_tensor({24, 25, 4}, DType::float32, device(0), 3);
    Dropping plain = home(Dropping());
    plain.folds = dim == 0;
    std::vector<Tensor> by_devices;
    std::uint64_t position = 0;
    for (int n = 1; n <= device_count(); ++n) {
      manual_seed(9);
      const DataParallel model(clone(plain), group(n), {.dim = dim});
      const Tensor first = model(x);
      by_devices.push_back(cat({first, model(x)}));  // two forwards
      if (n == 1) position = random_state().stream;
      INFO(n << " devices, dim " << dim);
      CHECK(random_state().stream == position);
      CHECK_SAME_BITS(by_devices.back(), by_devices.front());
    }
    CHECK_FALSE(equal(by_devices[0].narrow(0, 0, 24), by_devices[0].narrow(0, 24, 24)));
    if (dim > 0) continue;
    manual_seed(9);
    const Tensor first = plain(x);
    CHECK_SAME_BITS(cat({first, plain(x)}), by_devices.front());
  }
  manual_seed(0);
}

TEST_CASE(
    "Dropout: a state of the random numbers that is put back brings the masks back, on any number "
    "of devices",
    "[parallel][data_parallel][random]") {
  const Tensor x = random_tensor({24, 25, 4}, DType::float32, device(0), 3);
  const auto model = [&](int n) { return DataParallel(home(Dropping()), group(n)); };
  manual_seed(9);
  (void)model(1)(x);
  const RandomState state = random_state();
  const Tensor next = model(1)(x);
  const RandomState after = random_state();
  CHECK_FALSE(state == after);
  for (int n = 1; n <= device_count(); ++n) {
    manual_seed(10);
    (void)model(n)(x);
    set_random_state(state);
    CHECK_SAME_BITS(model(n)(x), next);
    CHECK(random_state() == after);
  }
  manual_seed(0);
}

TEST_CASE("Dropout: the gradient has the mask of its forward on every device",
          "[parallel][data_parallel][random]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Tensor x = random_tensor({24, 5}, DType::float32, device(0), 3).requires_grad_();
    const DataParallel model(home(nn::Sequential{nn::Dropout(0.5)}), group(n));
    const Tensor y = model(x);
    y.sum().backward();
    CHECK_SAME_BITS(x.grad() * x.detach(), y.detach());
  }
}

TEST_CASE("MultiheadAttention: dropout of the probabilities does not depend on the split",
          "[parallel][data_parallel][random]") {
  nn::MultiheadAttention layer =
      home(nn::MultiheadAttention(8, 2, {.dropout = 0.5, .batch_first = true}));
  const Tensor x = random_tensor({24, 5, 8}, DType::float32, device(0), 3);
  struct Itself : nn::Module {
    nn::MultiheadAttention attention;
    explicit Itself(nn::MultiheadAttention a) : attention(std::move(a)) {}
    Tensor operator()(const Tensor& t) const { return attention(t, t, t); }
    BRAID_FIELDS(attention)
  };
  std::vector<double> first;
  for (int n = 1; n <= device_count(); ++n) {
    manual_seed(2);
    const DataParallel model(Itself(clone(layer)), group(n));
    const std::vector<double> y = model(x).to_vector<double>();
    if (n == 1) first = y;
    INFO(n << " devices");
    double largest = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      largest = std::max(largest, std::fabs(y[i] - first[i]));
    // products of other shapes may round otherwise; another mask would be off by much more
    CHECK(largest < 1e-5);
  }
  manual_seed(0);
}

TEST_CASE("DigitCapsules: each sample routes alone, so a split changes nothing",
          "[parallel][data_parallel]") {
  const nn::DigitCapsules plain = home(nn::DigitCapsules(6, 4, 3, 5, {.dtype = DType::float64}));
  const Tensor u = random_tensor({7, 6, 4}, DType::float64, device(0), 3),
               dy = random_tensor({7, 3, 5}, DType::float64, device(0), 4);
  Tensor expected, weight_gradient;
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    const DataParallel model(clone(plain), group(n));
    const Tensor x = u.clone().requires_grad_(), v = model(x);
    v.backward(dy);
    if (n == 1) {
      expected = plain(u).detach();
      weight_gradient = model.module.weight.grad();
    }
    // products of other shapes may round otherwise
    CHECK(allclose(v.detach(), expected, 1e-13, 1e-14));
    CHECK(allclose(model.module.weight.grad(), weight_gradient, 1e-12, 1e-13));
  }
}

}  // namespace braid::test::on_device
