// DataParallel's options for splitting, gathering and merging: chunk sizes, weights, the balanced
// rule, dims by argument, outputs that are not gathered, buffers.
#include <algorithm>
#include <numeric>

#include "group.hpp"

namespace braid::test::on_device {

using parallel::MergeBuffers;
using parallel::Split;

namespace {

using Sizes = std::vector<std::int64_t>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A sequence [time, batch, features] and a state [layers, batch, features], gathered again.
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
    return cross_entropy(sum_and_count, fc(x), labels);
  }
  BRAID_FIELDS(fc)
};

Sizes balanced(std::int64_t size, int n) {
  return chunk_sizes(size, usize(n), {.split = Split::balanced});
}
Sizes weighted(std::int64_t size, std::vector<double> weights) {
  return chunk_sizes(size, weights.size(), {.weights = weights});
}
std::int64_t sum(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}
Sizes given(Sizes list) { return chunk_sizes(10, 3, {.chunk_sizes = std::move(list)}); }

}  // namespace

TEST_CASE("options: the balanced rule; weights give rows in proportion", "[scatter]") {
  CHECK(balanced(10, 8) == Sizes{2, 2, 1, 1, 1, 1, 1, 1});
  CHECK(balanced(30, 4) == Sizes{8, 8, 7, 7});
  CHECK(balanced(9, 4) == Sizes{3, 2, 2, 2});
  CHECK(balanced(3, 5) == Sizes{1, 1, 1});
  CHECK(balanced(0, 3) == Sizes{0, 0, 0});
  for (std::int64_t size = 1; size < 70; ++size) {
    for (int n = 1; n <= 9; ++n) {
      const Sizes sizes = balanced(size, n);
      CHECK(static_cast<std::int64_t>(sizes.size()) == std::min<std::int64_t>(size, n));
      CHECK(sum(sizes) == size);
      CHECK(sizes.front() - sizes.back() <= 1);
    }
  }
  CHECK(weighted(30, {1, 1, 1}) == Sizes{10, 10, 10});
  CHECK(weighted(30, {2, 1}) == Sizes{20, 10});
  CHECK(weighted(10, {3, 3, 1}) == Sizes{4, 4, 2});
  CHECK(weighted(5, {1000, 1, 1}) == Sizes{3, 1, 1});
  CHECK(weighted(2, {1, 1, 1}) == Sizes{1, 1});
  CHECK(weighted(0, {1, 2}) == Sizes{0, 0});
  for (std::int64_t size = 3; size < 200; ++size) {
    const Sizes sizes = weighted(size, {0.37, 1.9, 1e-9});
    CHECK(sum(sizes) == size);
    CHECK(*std::min_element(sizes.begin(), sizes.end()) >= 1);
  }
}

TEST_CASE("options: what chunk sizes and weights have to be", "[scatter][errors]") {
  CHECK(given({7, 3}) == Sizes{7, 3});
  CHECK_THROWS_TEXT(ArgumentError,
                    "given chunk sizes don't sum up to the tensor's size (sum(chunk_sizes) == 9, "
                    "but expected 10)",
                    given({4, 5}));
  CHECK_THROWS_TEXT(ArgumentError, "Chunk size must be positive", given({10, 0}));
  CHECK_THROWS_TEXT(ArgumentError, "Chunk size must be positive", given({11, -1}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "scatter: expected at most 3 chunk sizes, one for each device, got 4",
                    given({4, 4, 1, 1}));
  CHECK_THROWS_TEXT(ArgumentError, "scatter: the sum of the chunk sizes is too large",
                    given({std::numeric_limits<std::int64_t>::max(), 11}));
  CHECK_THROWS_TEXT(ArgumentError, "scatter: expected 3 weights, one for each device, got 2",
                    chunk_sizes(10, 3, {.weights = {1, 2}}));
  for (const double wrong : {0.0, -1.0, kInfinity, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_TEXT(ArgumentError, "scatter: expected weights that are positive numbers",
                      weighted(10, {1, wrong}));
  CHECK_THROWS_TEXT(ArgumentError, "scatter: expected chunk sizes or weights, got both",
                    chunk_sizes(10, 2, {.chunk_sizes = {5, 5}, .weights = {1, 1}}));
}

TEST_CASE("options: DataParallel cuts as it is told, and computes the same", "[data_parallel]") {
  const int n = up_to(3);
  if (n < 2) return;
  const Tensor x = random_tensor({11, 4}, DType::float64, device(0), 3);
  const Made counts = home(Made([](const Tensor&, const Tensor& part) {
    return full({1}, static_cast<double>(part.size(0)), {.device = part.device()});
  }));
  const auto rows = [&](const DataParallelOptions& options) {
    return data_parallel(counts, x, group(n), options).to_vector<std::int64_t>();
  };
  CHECK(rows({.split = Split::balanced}) == balanced(11, n));
  std::vector<double> weights(usize(n), 1);
  weights[0] = 4;
  CHECK(rows({.weights = weights}) == weighted(11, weights));
  CHECK(rows({.chunk_sizes = {2, 9}}) == Sizes{2, 9});
  nn::Linear plain = home(nn::Linear(4, 2));
  to(plain, DType::float64);
  plain(x).sum().backward();
  for (const DataParallelOptions& options :
       {DataParallelOptions{.split = Split::balanced}, DataParallelOptions{.weights = weights},
        DataParallelOptions{.chunk_sizes = {9, 2}}}) {
    const DataParallel model(clone(plain), group(n), options);
    CHECK_CLOSE(data_parallel(plain, x, group(n), options), plain(x), (Tolerance{1e-12, 1e-12}));
    const Tensor y = model(x);
    CHECK_CLOSE(y, plain(x), (Tolerance{1e-12, 1e-12}));
    y.sum().backward();
    CHECK_CLOSE(model.module.weight.grad(), plain.weight.grad(), (Tolerance{1e-12, 1e-12}));
  }
  CHECK_THROWS_TEXT(ArgumentError,
                    "given chunk sizes don't sum up to the tensor's size (sum(chunk_sizes) == 10, "
                    "but expected 11)",
                    rows({.chunk_sizes = {2, 8}}));
}

TEST_CASE("options: dims by argument, of one tensor as two too", "[data_parallel]") {
  const int n = up_to(3);
  const Sequences plain = home(Sequences{});
  const Tensor x = random_tensor({5, 7, 3}, DType::float32, device(0), 4),
               scale = random_tensor({7, 4}, DType::float32, device(0), 5);
  const DataParallel model(clone(plain), group(n),
                           DataParallelOptions{.dims = {1, 0}, .output_dims = {1}});
  check_close(tree::leaves(model(x, scale)), tree::leaves(plain(x, scale)), {1e-6, 1e-6});
  const Tensor square = random_tensor({6, 6}, DType::float32, device(0), 4);
  const Made two = home(Made([](const Tensor& weight, const Tensor& rows, const Tensor& columns) {
    return std::tuple(rows * weight, columns * weight);
  }));
  for (int count = 1; count <= device_count(); ++count) {
    const auto joined = data_parallel(two, std::tuple(square, square), group(count),
                                      {.dims = {0, 1}, .output_dims = {0, 1}});
    check_same(tree::leaves(joined), {square, square});
  }
  if (n < 2) return;
  const DataParallel wrong(clone(plain), group(n), DataParallelOptions{.dims = {3}});
  CHECK_THROWS_TEXT(IndexError, "scatter", wrong(x, scale));
}

TEST_CASE("options: a loss taken in the replicas is that of the batch", "[data_parallel]") {
  const Tensor x = random_tensor({10, 4}, DType::float64, device(0), 7);
  const Tensor labels =
      tensor(std::vector<std::int64_t>{0, 1, 2, -100, 1, 0, -100, 2, 2, 1}, {.device = device(0)});
  WithLoss plain = home(WithLoss{});
  to(plain, DType::float64);
  const Tensor expected = cross_entropy(plain.fc(x), labels);
  expected.backward();
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(clone(plain), group(n));
    for (const Tensor& loss : {parallel::total(model.replicas(x, labels), device(0)).mean(),
                               model(x, labels).mean()}) {  // not gathered, and gathered
      CHECK_CLOSE(loss, expected, (Tolerance{1e-12, 1e-12}));
      zero_grad(model.module);
      loss.backward();
      CHECK_CLOSE(model.module.fc.weight.grad(), plain.fc.weight.grad(), (Tolerance{1e-12, 1e-12}));
    }
  }
  // The loss of row i is i, for rows 0 … 9 on three devices: 4, 4 and 2 rows.
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

TEST_CASE("options: outputs that are not joined stay where they are", "[data_parallel]") {
  const Tensor x = random_tensor({7, 4}, DType::float32, device(0), 6);
  for (int n = 1; n <= up_to(4); ++n) {
    const Sizes chunks = chunk_sizes(7, usize(n));
    const DataParallel model(home(nn::Linear(4, 2)), group(n));
    const std::vector<Tensor> outputs = model.replicas(x);
    CHECK(outputs.size() == chunks.size());
    std::vector<Tensor> home_again;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(outputs[i].device() == device(static_cast<int>(i)));
      home_again.push_back(outputs[i].to(device(0)));
    }
    CHECK_CLOSE(cat(home_again), model.module(x), (Tolerance{1e-6, 1e-6}));
  }
  CHECK(DataParallel(nn::Linear(4, 2), {}).replicas(x.to("cpu")).size() == 1);
}

TEST_CASE("options: merged buffers are the mean by rows", "[data_parallel]") {
  const int n = up_to(3);
  if (n < 2) return;
  const Tensor x = random_tensor({11, 3}, DType::float32, device(0), 8);
  const nn::BatchNorm1d start = home(nn::BatchNorm1d(3));
  DataParallel model(clone(start), group(n),
                     DataParallelOptions{.merge_buffers = MergeBuffers::mean});
  const Tensor handle = model.module.running_mean;
  (void)model(x);
  std::vector<double> expected(3, 0);
  std::int64_t at = 0;
  for (const std::int64_t rows : chunk_sizes(11, usize(n))) {
    const nn::BatchNorm1d alone = clone(start);
    (void)alone(x.narrow(0, at, rows));
    const std::vector<double> mean = numbers(alone.running_mean);
    for (std::size_t j = 0; j < 3; ++j) expected[j] += mean[j] * static_cast<double>(rows) / 11;
    at += rows;
  }
  CHECK(model.module.running_mean.id() == handle.id());
  CHECK_CLOSE(model.module.running_mean, tensor(expected), (Tolerance{0, 1e-7}));
  CHECK(model.module.num_batches_tracked.item<int>() == 1);
  // Evaluation writes nothing.
  const std::vector<double> before = numbers(model.module.running_var);
  eval(model.module);
  const std::uint64_t version = model.module.running_var.version();
  (void)model(x);
  CHECK(numbers(model.module.running_var) == before);
  CHECK(model.module.running_var.version() == version);
}

}  // namespace braid::test::on_device
