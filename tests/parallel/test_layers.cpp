// BatchNorm, SyncBatchNorm, Dropout, attention and capsules in DataParallel: which statistics
// count, and that a split changes neither masks nor routing. Also the rendezvous of replicas.
#include <algorithm>

#include <braid/nn/replica_group.hpp>

#include "group.hpp"

namespace braid::test::on_device {

namespace {

/// Dropout on the rows of the batch, on rows folded into another axis, and on channels.
struct Dropping : nn::Module {
  nn::Dropout first{0.25}, second{0.5};
  nn::Dropout1d channels{0.5};
  bool folds = true;  // if the batch is dim 0
  Tensor operator()(const Tensor& x) const {
    const Tensor a = second(first(x));
    return channels(folds ? second(a.reshape({-1, x.shape().back()})).reshape(x.shape()) : a);
  }
  BRAID_FIELDS(first, second, channels)
};

struct SelfAttention : nn::Module {
  nn::MultiheadAttention attention{8, 2, {.dropout = 0.5, .batch_first = true}};
  Tensor operator()(const Tensor& t) const { return attention(t, t, t); }
  BRAID_FIELDS(attention)
};

/// Seeds the random numbers, and seeds them with 0 at the end of a scope.
struct Seeded {
  explicit Seeded(std::uint64_t seed) { manual_seed(seed); }
  ~Seeded() { manual_seed(0); }
};

template <class Norm> struct Model : nn::Module {
  nn::Linear fc1{4, 5};
  Norm norm{5};
  nn::Linear fc2{5, 2};
  Tensor operator()(const Tensor& x) const { return fc2(norm(fc1(x))); }
  BRAID_FIELDS(fc1, norm, fc2)
};
using Whole = Model<nn::BatchNorm1d>;
using Split = Model<nn::SyncBatchNorm>;

Whole whole() {
  Whole model = home(Whole{});
  to(model, DType::float64);
  return model;
}
DataParallel<Split> split(const Whole& from, int n) {
  Split model = home(Split{});
  to(model, DType::float64);
  load_state_dict(model, state_dict(from));
  return DataParallel(std::move(model), group(n));
}

Tensor batch(std::int64_t rows, std::uint64_t seed = 3) {
  return random_tensor({rows, 4}, DType::float64, device(0), seed);
}

/// Throws on one device, before the layer.
struct Fails : nn::Module {
  nn::SyncBatchNorm norm{4};
  int on = -1;
  Tensor operator()(const Tensor& x) const {
    if (norm.weight.device().index() == on) throw ArgumentError("asked to fail");
    return norm(x);
  }
  BRAID_FIELDS(norm, on)
};

}  // namespace

TEST_CASE("BatchNorm: each replica by its chunk; replica 0's statistics stay", "[data_parallel]") {
  const Tensor x = random_tensor({24, 3}, DType::float32, device(0), 5);
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    nn::BatchNorm1d alone = home(nn::BatchNorm1d(3)), chunk = clone(alone);
    const DataParallel model(clone(alone), group(n));
    const Tensor mean_before = model.module.running_mean;
    const Tensor y = model(x);
    const std::int64_t rows = (24 + n - 1) / n;
    std::vector<Tensor> expected;
    for (std::int64_t at = 0; at < 24; at += rows)
      expected.push_back((at == 0 ? chunk : alone)(x.narrow(0, at, std::min(rows, 24 - at))));
    CHECK_SAME_BITS(y, cat(expected));
    CHECK(model.module.running_mean.id() == mean_before.id());
    CHECK_SAME_BITS(model.module.running_mean, chunk.running_mean);
    CHECK_SAME_BITS(model.module.running_var, chunk.running_var);
    CHECK(model.module.num_batches_tracked.item<int>() == 1);
    (void)model(x);
    CHECK(model.module.num_batches_tracked.item<int>() == 2);
    // Evaluation uses the new statistics on every device.
    DataParallel evaluated(clone(model.module), group(n));
    nn::BatchNorm1d plain = clone(model.module);
    eval(evaluated);
    eval(plain);
    CHECK_SAME_BITS(evaluated(x), plain(x));
  }
}

TEST_CASE("Dropout: the same bits over any devices, as without DataParallel", "[data_parallel]") {
  for (const int dim : {0, 1, -2}) {  // -2: for the only argument; outputs gathered by hand
    const Tensor x = random_tensor({24, 25, 4}, DType::float32, device(0), 3);
    Dropping plain = home(Dropping());
    plain.folds = dim == 0;
    std::uint64_t position = 0;
    Tensor first;
    check_same_over_counts([&](int n) -> std::vector<Tensor> {
      const Seeded seeded(9);
      DataParallelOptions options;
      if (dim < 0) options.dims = {dim};
      else options.dim = dim;
      const DataParallel model(clone(plain), group(n), options);
      std::vector<Tensor> outputs;  // of two forwards
      for (int i = 0; i < 2; ++i) {
        std::vector<Tensor> parts;
        if (dim < 0)
          for (const Tensor& part : model.replicas(x)) parts.push_back(part.to(device(0)));
        outputs.push_back(dim < 0 ? cat(parts, 1) : model(x));
      }
      if (n == 1) position = random_state().stream;
      CHECK(random_state().stream == position);
      CHECK_FALSE(equal(outputs[0], outputs[1]));
      if (n == 1) first = cat(outputs);
      return outputs;
    });
    if (dim != 0) continue;
    const Seeded seeded(9);
    const Tensor y = plain(x);
    CHECK_SAME_BITS(cat({y, plain(x)}), first);
  }
}

TEST_CASE("Dropout: a random state that is put back brings masks back", "[data_parallel]") {
  const Tensor x = random_tensor({24, 25, 4}, DType::float32, device(0), 3);
  const auto model = [&](int n) { return DataParallel(home(Dropping()), group(n)); };
  const Seeded seeded(9);
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
}

TEST_CASE("Dropout: the gradient has the mask of its forward on every device", "[data_parallel]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Tensor x = random_tensor({24, 5}, DType::float32, device(0), 3).requires_grad_();
    const DataParallel model(home(nn::Sequential{nn::Dropout(0.5)}), group(n));
    const Tensor y = model(x);
    y.sum().backward();
    CHECK_SAME_BITS(x.grad() * x.detach(), y.detach());
  }
}

TEST_CASE("attention's dropout and capsules' routing: no split changes them", "[data_parallel]") {
  const SelfAttention attention = home(SelfAttention{});
  const nn::DigitCapsules capsules = home(nn::DigitCapsules(6, 4, 3, 5, {.dtype = DType::float64}));
  const Tensor x = random_tensor({24, 5, 8}, DType::float32, device(0), 3),
               u = random_tensor({7, 6, 4}, DType::float64, device(0), 3),
               dv = random_tensor({7, 3, 5}, DType::float64, device(0), 4);
  Tensor probabilities, gradient;
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    const Seeded seeded(2);
    const Tensor y = DataParallel(clone(attention), group(n))(x);
    // products of other shapes may round differently; another mask would differ much more
    if (n == 1) probabilities = y;
    CHECK_CLOSE(y, probabilities, (Tolerance{0, 1e-5}));
    const DataParallel model(clone(capsules), group(n));
    const Tensor v = model(u);
    v.backward(dv);
    CHECK_CLOSE(v, capsules(u), (Tolerance{1e-13, 1e-14}));
    if (n == 1) gradient = model.module.weight.grad();
    CHECK_CLOSE(model.module.weight.grad(), gradient, (Tolerance{1e-12, 1e-13}));
  }
}

TEST_CASE("SyncBatchNorm is BatchNorm of the whole batch", "[sync_batch_norm]") {
  const Whole plain = whole();
  for (int n = 1; n <= up_to(5); ++n) {
    Whole alone = clone(plain);
    DataParallel model = split(plain, n);
    for (const std::int64_t rows : {13, 8, 5}) {
      const Tensor x = batch(rows, static_cast<std::uint64_t>(rows)), x2 = x.detach().clone();
      x.requires_grad_();
      x2.requires_grad_();
      const Tensor y = model(x), expected = alone(x2);
      CHECK_CLOSE(y, expected, (Tolerance{1e-10, 1e-11}));
      (y * y * y).sum().backward();
      (expected * expected * expected).sum().backward();
      CHECK_CLOSE(x.grad(), x2.grad(), (Tolerance{1e-8, 1e-9}));
    }
    const nn::SyncBatchNorm& norm = model.module.norm;
    CHECK_CLOSE(model.module.fc1.weight.grad(), alone.fc1.weight.grad(), (Tolerance{1e-8, 1e-9}));
    CHECK_CLOSE(norm.weight.grad(), alone.norm.weight.grad(), (Tolerance{1e-9, 1e-10}));
    CHECK_CLOSE(norm.bias.grad(), alone.norm.bias.grad(), (Tolerance{1e-9, 1e-10}));
    CHECK_CLOSE(norm.running_mean, alone.norm.running_mean, (Tolerance{1e-11, 1e-12}));
    CHECK_CLOSE(norm.running_var, alone.norm.running_var, (Tolerance{1e-11, 1e-12}));
    CHECK(norm.num_batches_tracked.item<int>() == 3);
    eval(model);
    eval(alone);
    CHECK_CLOSE(model(batch(6)), alone(batch(6)), (Tolerance{1e-11, 1e-12}));
  }
  // A gradient of a gradient passes through the statistics of all replicas.
  const DataParallel model = split(plain, up_to(2));
  const Tensor x = batch(6).requires_grad_();
  check_close(penalty_gradients(model, x, {x}, {model.module.fc1.weight}),
              penalty_gradients(plain, x, {x}, {plain.fc1.weight}), {1e-7, 1e-8});
}

TEST_CASE("SyncBatchNorm: images, float16, without parameters", "[sync_batch_norm]") {
  const int n = up_to(3);
  const Tensor x = random_tensor({7, 3, 2, 5}, DType::float32, device(0), 8);
  for (const nn::BatchNormOptions& options :
       {nn::BatchNormOptions{}, nn::BatchNormOptions{.affine = false},
        nn::BatchNormOptions{.momentum = {}}, nn::BatchNormOptions{.track_running_stats = false}}) {
    nn::BatchNorm2d plain = home(nn::BatchNorm2d(3, options));
    const DataParallel model(home(nn::SyncBatchNorm(3, options)), group(n));
    CHECK_CLOSE(model(x), plain(x), (Tolerance{1e-5, 1e-5}));
    if (options.track_running_stats)
      CHECK_CLOSE(model.module.running_var, plain.running_var, (Tolerance{1e-5, 1e-6}));
  }
  DataParallel half(home(nn::SyncBatchNorm(3)), group(n));
  to(half, DType::float16);
  const Tensor y = half(x.to(DType::float16));
  CHECK(y.dtype() == DType::float16);
  CHECK_CLOSE(y, home(nn::BatchNorm2d(3))(x), (Tolerance{1e-2, 1e-2}));
}

TEST_CASE("all_reduce: replicas that bring other things are an error", "[sync_batch_norm]") {
  if (device_count() < 2) return;
  int kind = 0;
  const Made brings = home(Made([&kind](const Tensor&, const Tensor& x) -> Tensor {
    ReplicaGroup* const all = replica_group();
    const bool first = x.device() == device(0);
    const Tensor one = ones({2}, {.device = x.device()});
    if (kind == 0 && first) return all->all_reduce({one})[0];
    if (kind == 0) return one * all->all_reduce(1.0);
    if (kind == 1)
      return all->all_reduce(first ? std::vector<Tensor>{one} : std::vector<Tensor>{one, one})[0];
    if (kind == 2) return all->all_reduce({first ? one : ones({3}, {.device = x.device()})})[0];
    if (kind == 3) return first ? one : all->all_reduce({one})[0];
    return all->all_reduce({one.to(DType::int64)})[0];
  }));
  constexpr const char* kOthers =
      "all_reduce: expected tensors like those of replica 0, each on its device, got others from "
      "replica 1";
  for (const char* const text :
       {"Caught ArgumentError in replica 0 on device *all_reduce: expected all replicas to bring "
        "the same, got",
        kOthers, kOthers,
        "Caught ArgumentError in replica 1 on device *all_reduce: expected all replicas, got none "
        "from replica 0, which has ended",
        "Caught DTypeError in replica 0 on device *reduce: expected floating point, got int64"}) {
    CHECK_THROWS_TEXT(ReplicaError, text, data_parallel(brings, ones({6, 1}), group(up_to(3))));
    ++kind;
  }
}

TEST_CASE("SyncBatchNorm: a replica that never comes is an error, no wait", "[sync_batch_norm]") {
  for (int n = 2; n <= up_to(5); ++n) {
    const Tensor x = batch(4 * n).to(DType::float32);
    for (int on = 0; on < n; ++on) {
      DataParallel model(home(Fails{}), group(n));
      model.module.on = device(on).index();
      const Tensor before = model.module.norm.running_mean.clone();
      // The errors of the others are follow-up errors; the replica that failed is named.
      CHECK_THROWS_TEXT(
          ReplicaError,
          str("Caught ArgumentError in replica ", on, " on device ", device(on), ": asked to fail"),
          model(x));
      CHECK_SAME_BITS(model.module.norm.running_mean, before);
      model.module.on = -1;
      (void)model(x);
    }
  }
}

TEST_CASE("SyncBatchNorm: what it refuses, before a replica waits", "[sync_batch_norm][errors]") {
  const nn::SyncBatchNorm norm = home(nn::SyncBatchNorm(3));
  CHECK_THROWS_TEXT(ShapeError, "SyncBatchNorm: expected x [n, 3, ..], got [4, 2]",
                    norm(zeros({4, 2}, {.device = device(0)})));
  CHECK_THROWS_TEXT(ShapeError, "SyncBatchNorm: expected x [n, 3, ..], got [3]",
                    norm(zeros({3}, {.device = device(0)})));
  CHECK_THROWS_AS(norm(zeros({1, 3}, {.device = device(0)})), ArgumentError);
  if (device_count() < 2) return;
  const auto check_refused = [](const nn::BatchNormOptions& options, DType type, const char* text) {
    const DataParallel model(home(nn::SyncBatchNorm(2, options)), group(2));
    CHECK_THROWS_TEXT(ReplicaError, text, model(ones({4, 2}, {.device = device(0)}).to(type)));
  };
  check_refused({}, DType::int64, "SyncBatchNorm: expected floating point, got int64");
  check_refused({.eps = -1}, DType::float32, "SyncBatchNorm: expected eps >= 0, got -1");
  check_refused({.momentum = 2}, DType::float32,
                "SyncBatchNorm: expected 0 <= momentum <= 1, got 2");
  const DataParallel model(clone(norm), group(2));
  // one value in each replica is enough
  (void)model(random_tensor({2, 3}, DType::float32, device(0), 1));
  CHECK(model.module.num_batches_tracked.item<int>() == 1);
}

TEST_CASE("replica_group: a replica sees the others, and nobody outside", "[sync_batch_norm]") {
  CHECK(replica_group() == nullptr);
  const Made sees = home(Made([](const Tensor&, const Tensor& x) {
    ReplicaGroup* const all = replica_group();
    return full({1, 2}, all ? all->all_reduce(static_cast<double>(x.size(0))) : -1.0,
                {.device = x.device()});
  }));
  for (int n = 2; n <= up_to(4); ++n)
    for (const double seen : numbers(data_parallel(sees, batch(9), group(n)))) CHECK(seen == 9);
  CHECK(replica_group() == nullptr);
}

}  // namespace braid::test::on_device
