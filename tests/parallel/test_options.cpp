// How DataParallel can be told to cut, join and merge: chunk sizes, weights, the balanced rule,
// dims by argument, outputs that are not joined, buffers.
#include <braid/nn/dropout.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/rnn.hpp>
#include <braid/parallel/data_parallel.hpp>

#include <limits>
#include <numeric>
#include <tuple>

#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::chunk_sizes;
using parallel::data_parallel;
using parallel::DataParallel;
using parallel::DataParallelOptions;
using parallel::MergeBuffers;
using parallel::ScatterOptions;
using parallel::Split;

namespace {

using Sizes = std::vector<std::int64_t>;

/// The rows that the replica of each device gets.
struct Rows : nn::Module {
  nn::Parameter weight{ones({1})};
  Tensor operator()(const Tensor& x) const {
    return full({1}, static_cast<double>(x.size(0)), {.device = x.device()});
  }
  BRAID_FIELDS(weight)
};

/// A sequence [time, batch, features] and a state [layers, batch, features], joined again.
struct Sequences : nn::Module {
  nn::LSTM lstm{3, 4};
  std::tuple<Tensor, Tensor> operator()(const Tensor& x, const Tensor& scale) const {
    const Tensor y = lstm(x).output;
    return {y * scale, y.sum({0})};
  }
  BRAID_FIELDS(lstm)
};

struct WithLoss : nn::Module {
  nn::Linear fc{4, 3};
  LossSum operator()(const Tensor& x, const Tensor& labels) const {
    return cross_entropy_sum(fc(x), labels);
  }
  BRAID_FIELDS(fc)
};

struct Text : nn::Module {
  nn::Parameter weight{ones({1})};
  std::string operator()(const Tensor& x) const { return str(x.size(0), " on ", x.device()); }
  BRAID_FIELDS(weight)
};

Sizes balanced(std::int64_t size, std::size_t n) {
  return chunk_sizes(size, n, {.split = Split::balanced});
}
Sizes weighted(std::int64_t size, std::vector<double> weights) {
  return chunk_sizes(size, weights.size(), {.weights = weights});
}

}  // namespace

TEST_CASE("3.3: the balanced rule", "[parallel][scatter]") {
  CHECK(balanced(10, 8) == Sizes{2, 2, 1, 1, 1, 1, 1, 1});
  CHECK(balanced(30, 4) == Sizes{8, 8, 7, 7});
  CHECK(balanced(9, 4) == Sizes{3, 2, 2, 2});
  CHECK(balanced(3, 5) == Sizes{1, 1, 1});
  CHECK(balanced(0, 3) == Sizes{0, 0, 0});
  for (std::int64_t size = 1; size < 70; ++size) {
    for (std::size_t n = 1; n <= 9; ++n) {
      const Sizes sizes = balanced(size, n);
      CHECK(sizes.size() == std::min(static_cast<std::size_t>(size), n));
      CHECK(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == size);
      CHECK(sizes.front() - sizes.back() <= 1);
    }
  }
}

TEST_CASE("3.2: weights give rows in proportion, one at least", "[parallel][scatter]") {
  CHECK(weighted(30, {1, 1, 1}) == Sizes{10, 10, 10});
  CHECK(weighted(30, {2, 1}) == Sizes{20, 10});
  CHECK(weighted(10, {3, 3, 1}) == Sizes{4, 4, 2});
  CHECK(weighted(5, {1000, 1, 1}) == Sizes{3, 1, 1});
  CHECK(weighted(2, {1, 1, 1}) == Sizes{1, 1});
  CHECK(weighted(0, {1, 2}) == Sizes{0, 0});
  for (std::int64_t size = 3; size < 200; ++size) {
    const Sizes sizes = weighted(size, {0.37, 1.9, 1e-9});
    CHECK(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == size);
    CHECK(*std::min_element(sizes.begin(), sizes.end()) >= 1);
  }
}

TEST_CASE("3.2: what chunk sizes and weights have to be", "[parallel][scatter][errors]") {
  const auto sizes = [](Sizes list) {
    return [list] { (void)chunk_sizes(10, 3, {.chunk_sizes = list}); };
  };
  CHECK(chunk_sizes(10, 3, {.chunk_sizes = {7, 3}}) == Sizes{7, 3});
  CHECK_THROWS_TEXT(ArgumentError,
                    "given chunk sizes don't sum up to the tensor's size (sum(chunk_sizes) == 9, "
                    "but expected 10)",
                    sizes({4, 5})());
  CHECK_THROWS_TEXT(ArgumentError, "Chunk size must be positive", sizes({10, 0})());
  CHECK_THROWS_TEXT(ArgumentError, "Chunk size must be positive", sizes({11, -1})());
  CHECK_THROWS_TEXT(ArgumentError,
                    "scatter: expected at most 3 chunk sizes, one for each device, got 4",
                    sizes({4, 4, 1, 1})());
  CHECK_THROWS_TEXT(ArgumentError, "scatter: the sum of the chunk sizes is too large",
                    sizes({std::numeric_limits<std::int64_t>::max(), 11})());
  CHECK_THROWS_TEXT(ArgumentError, "scatter: expected 3 weights, one for each device, got 2",
                    (void)chunk_sizes(10, 3, {.weights = {1, 2}}));
  for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_TEXT(ArgumentError, "scatter: expected weights that are positive numbers",
                      (void)chunk_sizes(10, 2, {.weights = {1, wrong}}));
  CHECK_THROWS_TEXT(ArgumentError, "scatter: expected chunk sizes or weights, got both",
                    (void)chunk_sizes(10, 2, {.chunk_sizes = {5, 5}, .weights = {1, 1}}));
}

TEST_CASE("3.2, 3.3: DataParallel cuts as it is told, and computes the same",
          "[parallel][data_parallel]") {
  const int n = std::min(3, device_count());
  if (n < 2) return;
  const Tensor x = random_tensor({11, 4}, DType::float64, device(0), 3);
  const auto rows = [&](const DataParallelOptions& options) {
    return DataParallel(home(Rows{}), group(n), options)(x).to_vector<std::int64_t>();
  };
  CHECK(rows({.split = Split::balanced}) == balanced(11, static_cast<std::size_t>(n)));
  std::vector<double> weights(static_cast<std::size_t>(n), 1);
  weights[0] = 4;
  CHECK(rows({.weights = weights}) == weighted(11, weights));
  CHECK(rows({.chunk_sizes = {2, 9}}) == Sizes{2, 9});
  nn::Linear plain = home(nn::Linear(4, 2));
  to(plain, DType::float64);
  for (const DataParallelOptions& options :
       {DataParallelOptions{.split = Split::balanced}, DataParallelOptions{.weights = weights},
        DataParallelOptions{.chunk_sizes = {9, 2}}}) {
    const DataParallel model(clone(plain), group(n), options);
    CHECK(allclose(model(x), plain(x), 1e-12, 1e-12));
    CHECK(allclose(data_parallel(plain, x, group(n), options), plain(x), 1e-12, 1e-12));
    model(x).sum().backward();
    zero_grad(plain);
    plain(x).sum().backward();
    CHECK(allclose(model.module.weight.grad(), plain.weight.grad(), 1e-12, 1e-12));
  }
  CHECK_THROWS_TEXT(ArgumentError,
                    "given chunk sizes don't sum up to the tensor's size (sum(chunk_sizes) == 10, "
                    "but expected 11)",
                    rows({.chunk_sizes = {2, 8}}));
}

TEST_CASE("3.9: dims by argument, for inputs and outputs", "[parallel][data_parallel]") {
  const int n = std::min(3, device_count());
  Sequences plain = home(Sequences{});
  const Tensor x = random_tensor({5, 7, 3}, DType::float32, device(0), 4),
               scale = random_tensor({7, 4}, DType::float32, device(0), 5);
  const DataParallel model(clone(plain), group(n),
                           DataParallelOptions{.dims = {1, 0}, .output_dims = {1}});
  const auto [y, state] = model(x, scale);
  const auto [expected, expected_state] = plain(x, scale);
  CHECK(allclose(y, expected, 1e-6, 1e-6));
  CHECK(allclose(state, expected_state, 1e-6, 1e-6));
  if (n < 2) return;
  const DataParallel wrong(clone(plain), group(n), DataParallelOptions{.dims = {3}});
  CHECK_THROWS_TEXT(IndexError, "scatter", wrong(x, scale));
}

TEST_CASE(
    "3.9, 5.9: one tensor as two arguments is cut along the dim of each, and dropout's mask is the "
    "same for every split",
    "[parallel][data_parallel]") {
  struct Two : nn::Module {
    nn::Parameter weight{ones({1})};
    std::tuple<Tensor, Tensor> operator()(const Tensor& rows, const Tensor& columns) const {
      return {rows * weight, columns * weight};
    }
    BRAID_FIELDS(weight)
  };
  struct Drops : nn::Module {
    nn::Dropout dropout{0.5};
    nn::Parameter weight{ones({1})};
    Tensor operator()(const Tensor& x) const { return dropout(x) * weight; }
    BRAID_FIELDS(dropout, weight)
  };
  const Tensor x = random_tensor({6, 6}, DType::float32, device(0), 4),
               sequence = random_tensor({4, 6, 3}, DType::float32, device(0), 5);
  Tensor mask;
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    const DataParallel model(home(Two{}), group(n),
                             DataParallelOptions{.dims = {0, 1}, .output_dims = {0, 1}});
    const auto [rows, columns] = model(x, x);
    CHECK_SAME_BITS(rows.detach(), x);
    CHECK_SAME_BITS(columns.detach(), x);
    const DataParallel drops(home(Drops{}), group(n),
                             DataParallelOptions{.dims = {-2}, .output_dims = {1}});
    manual_seed(11);
    const std::vector<Tensor> parts = drops.replicas(sequence);
    std::vector<Tensor> at_home;
    for (const Tensor& part : parts) at_home.push_back(part.detach().to(device(0)));
    const Tensor y = cat(at_home, 1);
    if (n == 1) mask = y;
    CHECK_SAME_BITS(y, mask);
  }
}

TEST_CASE(
    "7.7: a loss taken in the replicas is that of the batch, for uneven chunks too, joined or not",
    "[parallel][data_parallel][gradients]") {
  const Tensor x = random_tensor({10, 4}, DType::float64, device(0), 7);
  const Tensor labels =
      tensor(std::vector<std::int64_t>{0, 1, 2, -100, 1, 0, -100, 2, 2, 1}, {.device = device(0)});
  WithLoss plain = home(WithLoss{});
  to(plain, DType::float64);
  const Tensor expected = cross_entropy(plain.fc(x), labels);
  expected.backward();
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(clone(plain), group(n));
    const auto check = [&](const Tensor& loss) {
      CHECK(allclose(loss, expected, 1e-12, 1e-12));
      zero_grad(model.module);
      loss.backward();
      CHECK(allclose(model.module.fc.weight.grad(), plain.fc.weight.grad(), 1e-12, 1e-12));
    };
    check(parallel::total(model.replicas(x, labels), device(0)).mean());
    check(model(x, labels).mean());  // joined
  }
  // Rows 0 … 9 with the row's number as loss, on three devices: 4, 4 and 2 rows.
  const Tensor means = tensor({1.5, 5.5, 8.5}, {.device = device(0)});
  CHECK(std::abs(means.mean().item<double>() - 5.1667) < 1e-4);
  CHECK(parallel::weighted_mean(means, chunk_sizes(10, 3)).item<double>() == 4.5);
  CHECK_THROWS_TEXT(ArgumentError, "total: expected at least one part of a loss, got none",
                    parallel::total(std::vector<LossSum>{}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError, "total: expected a sum in every part, got none in part 0",
                    parallel::total(std::vector<LossSum>(1), device(0)));
  CHECK_THROWS_TEXT(ShapeError, "weighted_mean: expected means [2]",
                    parallel::weighted_mean(means, {5, 5}));
  CHECK_THROWS_TEXT(ArgumentError, "weighted_mean: expected rows >= 0, got -1",
                    parallel::weighted_mean(means, {5, 6, -1}));
  CHECK_THROWS_TEXT(ArgumentError, "weighted_mean: expected rows in one chunk at least",
                    parallel::weighted_mean(means, {0, 0, 0}));
}

TEST_CASE("6.9: outputs that are not joined stay where they are, of any type",
          "[parallel][data_parallel]") {
  const Tensor x = random_tensor({7, 4}, DType::float32, device(0), 6);
  for (int n = 1; n <= std::min(4, device_count()); ++n) {
    const DataParallel model(home(nn::Linear(4, 2)), group(n));
    const std::vector<Tensor> outputs = model.replicas(x);
    CHECK(outputs.size() == chunk_sizes(7, static_cast<std::size_t>(n)).size());
    std::vector<Tensor> home_again;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(outputs[i].device() == device(static_cast<int>(i)));
      home_again.push_back(outputs[i].to(device(0)));
    }
    CHECK(allclose(cat(home_again), model.module(x), 1e-6, 1e-6));
    const DataParallel said(home(Text{}), group(n));
    CHECK(said.replicas(x).front() ==
          str(chunk_sizes(7, static_cast<std::size_t>(n)).front(), " on ", device(0)));
  }
  CHECK(DataParallel(nn::Linear(4, 2), {}).replicas(x.to("cpu")).size() == 1);
}

TEST_CASE("8.6: merged buffers are the mean over the replicas by their rows",
          "[parallel][data_parallel]") {
  const int n = std::min(3, device_count());
  if (n < 2) return;
  const Tensor x = random_tensor({11, 3}, DType::float32, device(0), 8);
  const nn::BatchNorm1d start = home(nn::BatchNorm1d(3));
  const DataParallel model(clone(start), group(n),
                           DataParallelOptions{.merge_buffers = MergeBuffers::mean});
  const Tensor handle = model.module.running_mean;
  (void)model(x);
  std::vector<double> expected(3, 0);
  std::int64_t at = 0;
  for (const std::int64_t rows : chunk_sizes(11, static_cast<std::size_t>(n))) {
    const nn::BatchNorm1d alone = clone(start);
    (void)alone(x.narrow(0, at, rows));
    const std::vector<double> mean = numbers(alone.running_mean);
    for (std::size_t j = 0; j < 3; ++j) expected[j] += mean[j] * static_cast<double>(rows) / 11;
    at += rows;
  }
  CHECK(model.module.running_mean.id() == handle.id());
  for (std::size_t j = 0; j < 3; ++j)
    CHECK(std::abs(numbers(model.module.running_mean)[j] - expected[j]) < 1e-7);
  CHECK(model.module.num_batches_tracked.item<int>() == 1);
  // In evaluation nothing is written.
  const std::vector<double> before = numbers(model.module.running_var);
  eval(model.module);
  const std::uint64_t version = model.module.running_var.version();
  (void)model(x);
  CHECK(numbers(model.module.running_var) == before);
  CHECK(model.module.running_var.version() == version);
}

}  // namespace braid::test::on_device
