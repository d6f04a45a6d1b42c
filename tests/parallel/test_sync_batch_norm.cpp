// Batch norm over all replicas, against batch norm of the whole batch.
#include <braid/nn/norm.hpp>
#include <braid/nn/sequential.hpp>
#include <braid/parallel/data_parallel.hpp>

#include <braid/core/ops/elementwise.hpp>
#include <braid/core/replicas.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;
using parallel::DataParallelOptions;

namespace {

template <class Norm> struct Model : nn::Module {
  nn::Linear fc1{4, 5};
  Norm norm{5};
  nn::Linear fc2{5, 2};
  Tensor operator()(const Tensor& x) const { return fc2(norm(fc1(x))); }
  BRAID_FIELDS(fc1, norm, fc2)
};

template <class To, class From> Model<To> same_weights(const From& from) {
  Model<To> model = home(Model<To>{});
  to(model, DType::float64);
  load_state_dict(model, state_dict(from));
  return model;
}

Tensor batch(std::int64_t rows, std::uint64_t seed = 3) {
  return random_tensor({rows, 4}, DType::float64, device(0), seed);
}

/// Fails on one device, before the layer.
struct Fails : nn::Module {
  nn::SyncBatchNorm norm{4};
  int on = -1;
  Tensor operator()(const Tensor& x) const {
    if (norm.weight.device().index() == on) throw ArgumentError("asked to fail");
    return norm(x);
  }
  BRAID_FIELDS(norm, on)
};

/// How the replicas see each other.
struct Sees : nn::Module {
  nn::Parameter weight{ones({1})};
  Tensor operator()(const Tensor& x) const {
    ReplicaGroup* const group = replica_group();
    return full({1, 2}, group ? group->all_reduce(static_cast<double>(x.size(0))) : -1.0,
                {.device = x.device()});
  }
  BRAID_FIELDS(weight)
};

}  // namespace

TEST_CASE(
    "8.6: SyncBatchNorm in DataParallel is BatchNorm of the whole batch: values, gradients, "
    "running statistics",
    "[parallel][sync_batch_norm]") {
  Model<nn::BatchNorm1d> plain = home(Model<nn::BatchNorm1d>{});
  to(plain, DType::float64);
  for (int n = 1; n <= std::min(5, device_count()); ++n) {
    Model<nn::BatchNorm1d> alone = clone(plain);
    DataParallel model(same_weights<nn::SyncBatchNorm>(plain), group(n));
    for (const std::int64_t rows : {13, 8, 5}) {
      const Tensor x = batch(rows, static_cast<std::uint64_t>(rows)), x2 = x.detach().clone();
      x.requires_grad_();
      x2.requires_grad_();
      const Tensor y = model(x), expected = alone(x2);
      CHECK(allclose(y, expected, 1e-10, 1e-11));
      (y * y * y).sum().backward();
      (expected * expected * expected).sum().backward();
      CHECK(allclose(x.grad(), x2.grad(), 1e-8, 1e-9));
    }
    CHECK(allclose(model.module.fc1.weight.grad(), alone.fc1.weight.grad(), 1e-8, 1e-9));
    CHECK(allclose(model.module.norm.weight.grad(), alone.norm.weight.grad(), 1e-9, 1e-10));
    CHECK(allclose(model.module.norm.bias.grad(), alone.norm.bias.grad(), 1e-9, 1e-10));
    CHECK(allclose(model.module.norm.running_mean, alone.norm.running_mean, 1e-11, 1e-12));
    CHECK(allclose(model.module.norm.running_var, alone.norm.running_var, 1e-11, 1e-12));
    CHECK(model.module.norm.num_batches_tracked.item<int>() == 3);
    eval(model);
    eval(alone);
    CHECK(allclose(model(batch(6)), alone(batch(6)), 1e-11, 1e-12));
  }
}

TEST_CASE("SyncBatchNorm: a gradient of a gradient goes through the statistics of all replicas",
          "[parallel][sync_batch_norm]") {
  const int n = std::min(2, device_count());
  Model<nn::BatchNorm1d> plain = home(Model<nn::BatchNorm1d>{});
  to(plain, DType::float64);
  DataParallel model(same_weights<nn::SyncBatchNorm>(plain), group(n));
  std::vector<Tensor> penalties;
  const auto penalty = [&](const auto& net, const auto& weight) {
    const Tensor x = batch(6);
    x.requires_grad_();
    const Tensor y = net(x);
    const std::vector<Tensor> roots{(y * y).sum()}, leaves{x};
    const Tensor g = grad(roots, leaves, {}, true, true)[0];
    (g * g).sum().backward();
    penalties.push_back(weight.grad());
  };
  penalty(plain, plain.fc1.weight);
  penalty(model, model.module.fc1.weight);
  CHECK(allclose(penalties[1], penalties[0], 1e-7, 1e-8));
}

TEST_CASE("SyncBatchNorm: images, float16, without parameters or running statistics",
          "[parallel][sync_batch_norm]") {
  const int n = std::min(3, device_count());
  const Tensor x = random_tensor({7, 3, 2, 5}, DType::float32, device(0), 8);
  for (const nn::BatchNormOptions& options :
       {nn::BatchNormOptions{}, nn::BatchNormOptions{.affine = false},
        nn::BatchNormOptions{.momentum = {}}, nn::BatchNormOptions{.track_running_stats = false}}) {
    nn::BatchNorm2d plain = home(nn::BatchNorm2d(3, options));
    const DataParallel model(home(nn::SyncBatchNorm(3, options)), group(n));
    CHECK(allclose(model(x), plain(x), 1e-5, 1e-5));
    if (options.track_running_stats)
      CHECK(allclose(model.module.running_var, plain.running_var, 1e-5, 1e-6));
  }
  DataParallel half(home(nn::SyncBatchNorm(3)), group(n));
  to(half, DType::float16);
  nn::BatchNorm2d plain = home(nn::BatchNorm2d(3));
  CHECK(half(x.to(DType::float16)).dtype() == DType::float16);
  CHECK(allclose(half(x.to(DType::float16)).to(DType::float32), plain(x), 1e-2, 1e-2));
}

TEST_CASE("all_reduce: replicas that bring other things are an error in all of them",
          "[parallel][sync_batch_norm][errors]") {
  struct Brings : nn::Module {
    nn::Parameter weight{ones({1})};
    int kind = 0;
    Tensor operator()(const Tensor& x) const {
      ReplicaGroup* const group = replica_group();
      const bool first = x.device() == device(0);
      const Tensor one = ones({2}, {.device = x.device()});
      if (kind == 0 && first) return group->all_reduce({one})[0];
      if (kind == 0) return one * group->all_reduce(1.0);
      if (kind == 1)
        return group->all_reduce(first ? std::vector<Tensor>{one}
                                       : std::vector<Tensor>{one, one})[0];
      if (kind == 2) return group->all_reduce({first ? one : ones({3}, {.device = x.device()})})[0];
      if (kind == 3) return first ? one : group->all_reduce({one})[0];
      return group->all_reduce({one.to(DType::int64)})[0];
    }
    BRAID_FIELDS(weight, kind)
  };
  const int n = std::min(3, device_count());
  if (n < 2) return;
  DataParallel model(home(Brings{}), group(n));
  const Tensor x = ones({2 * n, 1}, {.device = device(0)});
  const auto check = [&](int kind, const char* text) {
    model.module.kind = kind;
    CHECK_THROWS_TEXT(ReplicaError, text, model(x));
  };
  check(0,
        "Caught ArgumentError in replica 0 on device *all_reduce: expected all replicas to bring "
        "the same, got");
  check(1,
        "all_reduce: expected tensors like those of replica 0, each on its device, got others from "
        "replica 1");
  check(2,
        "all_reduce: expected tensors like those of replica 0, each on its device, got others from "
        "replica 1");
  check(3,
        "Caught ArgumentError in replica 1 on device *all_reduce: expected all replicas, got none "
        "from replica 0, which has ended");
  check(4, "Caught DTypeError in replica 0 on device *reduce: expected floating point, got int64");
}

TEST_CASE("SyncBatchNorm: what BatchNorm refuses is refused before anybody waits",
          "[parallel][sync_batch_norm][errors]") {
  const int n = std::min(2, device_count());
  if (n < 2) return;
  const Tensor x = ones({4, 2}, {.device = device(0)});
  CHECK_THROWS_TEXT(ReplicaError, "SyncBatchNorm: expected floating point, got int64",
                    DataParallel(home(nn::SyncBatchNorm(2)), group(n))(x.to(DType::int64)));
  CHECK_THROWS_TEXT(ReplicaError, "SyncBatchNorm: expected eps >= 0, got -1",
                    DataParallel(home(nn::SyncBatchNorm(2, {.eps = -1})), group(n))(x));
  CHECK_THROWS_TEXT(ReplicaError, "SyncBatchNorm: expected 0 <= momentum <= 1, got 2",
                    DataParallel(home(nn::SyncBatchNorm(2, {.momentum = 2})), group(n))(x));
}

TEST_CASE(
    "SyncBatchNorm: a replica that ends without coming is an error in the others, not a wait for "
    "ever",
    "[parallel][sync_batch_norm][errors]") {
  for (int n = 2; n <= std::min(5, device_count()); ++n) {
    for (int on = 0; on < n; ++on) {
      DataParallel model(home(Fails{}), group(n));
      model.module.on = device(on).index();
      const Tensor before = model.module.norm.running_mean.clone();
      // The others were left alone; the one that failed is named.
      CHECK_THROWS_TEXT(
          ReplicaError,
          str("Caught ArgumentError in replica ", on, " on device ", device(on), ": asked to fail"),
          model(batch(4 * n).to(DType::float32)));
      CHECK_SAME_BITS(model.module.norm.running_mean, before);
      model.module.on = -1;
      (void)model(batch(4 * n).to(DType::float32));
    }
  }
}

TEST_CASE("SyncBatchNorm: what it refuses", "[parallel][sync_batch_norm][errors]") {
  const nn::SyncBatchNorm norm = home(nn::SyncBatchNorm(3));
  CHECK_THROWS_TEXT(ShapeError, "SyncBatchNorm: expected x [n, 3, ..], got [4, 2]",
                    norm(zeros({4, 2}, {.device = device(0)})));
  CHECK_THROWS_TEXT(ShapeError, "SyncBatchNorm: expected x [n, 3, ..], got [3]",
                    norm(zeros({3}, {.device = device(0)})));
  CHECK_THROWS_AS(norm(zeros({1, 3}, {.device = device(0)})), ArgumentError);
  if (device_count() < 2) return;
  const DataParallel model(clone(norm), group(2));
  // one value in each replica is enough
  (void)model(random_tensor({2, 3}, DType::float32, device(0), 1));
  CHECK(model.module.num_batches_tracked.item<int>() == 1);
}

TEST_CASE("replica_group: a replica sees the others, and nobody outside",
          "[parallel][sync_batch_norm]") {
  CHECK(replica_group() == nullptr);
  for (int n = 2; n <= std::min(4, device_count()); ++n) {
    const DataParallel model(home(Sees{}), group(n));
    for (const double seen : numbers(model(batch(9).to(DType::float32)))) CHECK(seen == 9);
  }
  CHECK(replica_group() == nullptr);
}

}  // namespace braid::test::on_device
