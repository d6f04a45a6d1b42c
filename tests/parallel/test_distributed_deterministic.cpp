// DistributedDataParallel with virtual replicas: the same bits for any number of ranks and devices.
#include "distributed.hpp"

namespace braid::test {

namespace {

/// Everything that depends on the whole batch: statistics, masks.
struct Mixed : nn::Module {
  nn::Linear fc1{6, 9};
  nn::BatchNorm1d norm{9};
  nn::Dropout dropout{0.3};
  nn::Linear fc2{9, 7};
  nn::SyncBatchNorm last{7};
  nn::Linear fc3{7, 4};
  Tensor operator()(const Tensor& x) const { return fc3(last(fc2(dropout(relu(norm(fc1(x))))))); }
  BRAID_FIELDS(fc1, norm, dropout, fc2, last, fc3)
};

using LossOf =
    std::function<Tensor(const Tensor& y, int step, std::int64_t first, std::int64_t rows)>;

/// The parameters and buffers after a step with each global batch, which are those of rank 0; all
/// ranks must have the same.
template <class M>
std::vector<Tensor> train(int n, int each, DistributedOptions options,
                          const std::vector<std::int64_t>& batches, const LossOf& loss) {
  Results results(n);
  on_world(
      n,
      [&](const Ranks& ranks) {
        std::vector<Device> on;
        for (int i = 0; i < each; ++i) on.push_back(device(ranks->rank() * each + i));
        DistributedOptions own = options;
        own.device_ids = on;
        DistributedDataParallel model(placed_on(seeded<M>(), ranks->device()), ranks, own);
        optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
        for (std::size_t step = 0; step < batches.size(); ++step) {
          const std::int64_t rows = batches[step], first = rows * ranks->rank() / n,
                             end = rows * (ranks->rank() + 1) / n;
          const Tensor x = inputs(rows, step).narrow(0, first, end - first);
          optimizer.zero_grad();
          // The threads share the generator, which processes have each.
          ranks->barrier();
          if (ranks->rank() == 0) manual_seed(step);
          ranks->barrier();
          loss(model(x), static_cast<int>(step), first, rows).backward();
          optimizer.step();
        }
        std::vector<Tensor> state = values_of(model);
        for (const Tensor& t : buffers(model)) state.push_back(t.to(device(0)).clone());
        results.set(ranks->rank(), state);
      },
      each);
  results.check_equal();
  return results[0];
}

Tensor labels_of(std::int64_t rows, int step) {
  return randint(0, 4, {rows}, {.device = device(0), .seed = static_cast<std::uint64_t>(step)});
}
const LossOf kCrossEntropy = [](const Tensor& y, int step, std::int64_t first, std::int64_t rows) {
  return cross_entropy(y, labels_of(rows, step).narrow(0, first, y.size(0)).to(y.device()));
};
const LossOf kSquares = [](const Tensor& y, int step, std::int64_t first, std::int64_t rows) {
  return mse_loss(
      y,
      targets(rows, static_cast<std::uint64_t>(step)).narrow(0, first, y.size(0)).to(y.device()));
};
const LossOf kMean = [](const Tensor& y, int, std::int64_t, std::int64_t) {
  return (y * y * y).mean();
};

}  // namespace

TEST_CASE("distributed: D7 deterministic: the same bits for 1 to 4 ranks and 1 to 3 devices",
          "[distributed][deterministic]") {
  // 10 and 17 rows are fewer than virtual replicas; 100, 53 and 82 are not multiples of them, and
  // 82 times 1 / 82 is not 1 in float32
  std::vector<std::int64_t> batches{48, 10, 82, 100, 17, 53, 24};
  if (emulated()) batches.resize(3);
  std::size_t number = 0;
  for (const auto& [name, loss] : {std::pair("cross entropy", kCrossEntropy),
                                   std::pair("squares", kSquares), std::pair("mean", kMean)}) {
    INFO(name);
    const std::vector<Tensor> want = train<Mixed>(1, 1, {.virtual_replicas = 24}, batches, loss);
    for (int n = 1; n <= 4; ++n)
      for (int each = 1; each <= 3; ++each) {
        if (n * each > device_count() || n * each == 1 || !in_part(number++)) continue;
        INFO(n << " ranks of " << each << " devices");
        check_same(train<Mixed>(n, each,
                                {.bucket_bytes = n == 2 ? std::size_t{128} : std::size_t{1} << 20,
                                 .gradient_as_bucket_view = n == 3,
                                 .virtual_replicas = 24},
                                batches, loss),
                   want);
      }
  }
}

TEST_CASE("distributed: deterministic: the gradient is that of the mean over all rows",
          "[distributed][deterministic]") {
  for (const std::int64_t rows : {24, 22}) {
    Mlp alone = placed_on(seeded<Mlp>(), device(0));
    mse_loss(alone(inputs(rows, 1)), targets(rows, 1)).backward();
    for (const int n : {1, 2, 4}) {
      on_world(n, [&](const Ranks& ranks) {
        DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks,
                                      {.virtual_replicas = 8});
        const std::int64_t first = rows * ranks->rank() / n,
                           mine = rows * (ranks->rank() + 1) / n - first;
        const Tensor other = ones({1}, {.device = ranks->device(), .requires_grad = true});
        for (int step = 1; step <= 2; ++step) {  // gradients accumulate
          const Tensor y = model(inputs(rows, 1).narrow(0, first, mine));
          (mse_loss(y, targets(rows, 1).narrow(0, first, mine).to(y.device())) + other.sum() * 3)
              .backward();
          // a leaf that is not the model's has its own gradient
          expect(std::abs(other.grad().item<double>() - 3 * step) < 1e-5,
                 "another leaf's gradient");
          const std::vector<Tensor> got = parameters(model), want = parameters(alone);
          for (std::size_t k = 0; k < got.size(); ++k) {
            const Tensor d = got[k].grad().to(device(0)) - want[k].grad() * step;
            expect((d * d).sum().item<double>() < 1e-12, "the gradient of the mean over all rows");
          }
        }
      });
    }
  }
}

TEST_CASE("distributed: deterministic: the sampler's batches, the last one too",
          "[distributed][deterministic]") {
  struct Rows {
    [[nodiscard]] std::int64_t size() const { return 76; }
    [[nodiscard]] std::tuple<Tensor, Tensor> get(std::int64_t i) const {
      return {random_tensor({6}, DType::float32, Device(), static_cast<std::uint64_t>(i)),
              tensor(i % 4)};
    }
  };
  std::vector<Tensor> want;
  for (int n = 1; n <= 4; ++n) {
    Results results(n);
    on_world(n, [&](const Ranks& ranks) {
      data::DataLoader loader(
          Rows{}, {.batch_size = 24 / n,
                   .sampler = data::DistributedSampler(ranks->rank(), n,
                                                       {.shuffle = true, .consecutive = true})});
      DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks,
                                    {.virtual_replicas = 12});
      optim::AdamW optimizer(parameters(model), {.lr = 0.01});
      for (int epoch = 0; epoch < 2; ++epoch) {
        loader.set_epoch(epoch);
        for (auto& [x, label] : loader) {
          optimizer.zero_grad();
          cross_entropy(model(x), label.to(ranks->device())).backward();
          optimizer.step();
        }
      }
      results.set(ranks->rank(), values_of(model));
    });
    results.check_equal();
    if (n == 1) want = results[0];
    INFO(n << " ranks");
    check_same(results[0], want);
  }
}

TEST_CASE("distributed: deterministic: unused parameters", "[distributed][deterministic]") {
  std::vector<Tensor> want;
  for (int n = 1; n <= 3; ++n) {
    Results results(n);
    on_world(n, [&](const Ranks& ranks) {
      DistributedDataParallel model(placed_on(seeded<Branches>(), ranks->device()), ranks,
                                    {.find_unused_parameters = true, .virtual_replicas = 6});
      for (const bool uses_other : {true, false}) {
        const Tensor y = model(inputs(12, 4).narrow(0, 12 * ranks->rank() / n, 12 / n), uses_other);
        y.mean().backward();
      }
      std::vector<Tensor> gradients;
      for (const Tensor& p : parameters(model)) gradients.push_back(p.grad().to(device(0)).clone());
      results.set(ranks->rank(), gradients);
    });
    results.check_equal();
    if (n == 1) want = results[0];
    check_same(results[0], want);
  }
}

TEST_CASE("distributed: deterministic: what cannot be right is refused",
          "[distributed][deterministic]") {
  const auto run = [](int n, int virtual_replicas, const std::vector<std::int64_t>& rows) {
    std::vector<std::exception_ptr> errors;
    on_world(
        n,
        [&](const Ranks& ranks) {
          DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks,
                                        {.virtual_replicas = virtual_replicas});
          const std::int64_t mine = rows[usize(ranks->rank())];
          (void)model(inputs(64, 1).narrow(0, 0, mine));
        },
        1, &errors);
    std::vector<std::string> texts;
    for (const auto& e : errors) texts.push_back(e ? exception_message(e) : std::string());
    for (const std::string& text : texts) CHECK(text == texts.front());
    return texts.front();
  };
  CHECK(run(3, 24, {8, 8, 8}).empty());
  CHECK(matches(run(3, 24, {9, 8, 8}),
                "*expected 8 of 25 rows on rank 0, those of its virtual "
                "replicas 0 to 7 of 24, got 9*"));
  CHECK(matches(run(2, 3, {4, 4}), "*expected 2 of 8 rows on rank 0*number of ranks divides*"));
  CHECK(matches(run(2, 4, {4, 0}), "*at least one row for each rank, got none on rank 1"));
  const auto one = parallel::detail::make_thread_communicators({device(0)})[0];
  const auto make = [&](DistributedOptions options) {
    DistributedDataParallel model(placed_on(seeded<Mlp>(), device(0)), one, std::move(options));
  };
  CHECK_THROWS_TEXT(ArgumentError, "*expected virtual_replicas >= 0, got -1",
                    make({.virtual_replicas = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "*expected a hook or virtual_replicas, got both*",
                    make({.virtual_replicas = 4, .hook = parallel::fp16_compress}));
  DistributedDataParallel model(placed_on(seeded<Mlp>(), device(0)), one, {.virtual_replicas = 4});
  const Tensor loss = model(inputs(8, 1)).mean() + model->fc1.bias.sum();
  CHECK_THROWS_TEXT(AutogradError, "*parameter 'fc1.bias' to be used only inside of the model*",
                    loss.backward());
  CHECK_FALSE(model->fc1.weight.grad().defined());
}

}  // namespace braid::test
