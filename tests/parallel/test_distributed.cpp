// DistributedDataParallel over ranks that are threads: D1 to D11 of its specification.
#include "distributed.hpp"

namespace braid::test {

namespace {

constexpr Tolerance kParity{1e-6, 1e-6};

std::vector<Tensor> train_alone(int steps, std::int64_t rows) {
  Mlp model = placed_on(seeded<Mlp>(), device(0));
  optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto seed = static_cast<std::uint64_t>(step);
    mse_loss(model(inputs(rows, seed)), targets(rows, seed)).backward();
    optimizer.step();
  }
  return values_of(model);
}

Results train_together(int n, int steps, std::int64_t rows, const DistributedOptions& options,
                       int devices_each = 1) {
  Results results(n);
  on_world(
      n,
      [&](const Ranks& ranks) {
        DistributedOptions own = options;
        if (devices_each > 1) {
          std::vector<Device> on;
          for (int i = 0; i < devices_each; ++i)
            on.push_back(device(ranks->rank() * devices_each + i));
          own.device_ids = on;
        }
        parallel::Process process(ranks);
        DistributedDataParallel model(placed_on(seeded<Mlp>(), process.device()), process, own);
        optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
        for (int step = 0; step < steps; ++step) {
          optimizer.zero_grad();
          const auto seed = static_cast<std::uint64_t>(step);
          const Tensor y = model(rows_of(inputs(rows, seed), ranks->rank(), n));
          mse_loss(y, rows_of(targets(rows, seed), ranks->rank(), n).to(y.device())).backward();
          optimizer.step();
        }
        results.set(ranks->rank(), values_of(model));
      },
      devices_each);
  return results;
}

}  // namespace

TEST_CASE("distributed: D7 parity with one process, over all ways to reduce", "[distributed]") {
  const std::vector<Tensor> want = train_alone(6, 24);
  const std::pair<const char*, DistributedOptions> ways[] = {
      {"default", {}},
      {"small buckets", {.bucket_bytes = 1024}},
      {"views", {.bucket_bytes = 1024, .gradient_as_bucket_view = true}},
      {"unused", {.bucket_bytes = 1024, .find_unused_parameters = true}},
      {"static", {.bucket_bytes = 1024, .static_graph = true}},
      {"hook", {.bucket_bytes = 1024, .hook = parallel::all_reduce_hook}}};
  for (const auto& [name, options] : ways) {
    INFO(name);
    for (const int n : {1, 2, 3}) {
      INFO(n << " ranks");
      const Results results = train_together(n, 6, 24, options);
      results.check_equal();
      check_close(results[0], want, kParity);
    }
  }
}

TEST_CASE("distributed: D1 a rank with several devices reduces once", "[distributed]") {
  if (device_count() < 2) return;
  const std::vector<Tensor> want = train_alone(4, 24);
  const Results results = train_together(device_count() < 4 ? 1 : 2, 4, 24, {}, 2);
  results.check_equal();
  check_close(results[0], want, kParity);
}

}  // namespace braid::test
