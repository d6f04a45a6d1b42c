#include "transfer/prediction.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "support/rows.hpp"
#include "support/timing.hpp"

namespace bench::transfer {

std::vector<MeasuredStep> measure_mlp(braid::Device device, braid::Device partner,
                                      const std::vector<std::int64_t>& rows, int rounds) {
  using Single = decltype(make_mlp(0));
  using Parallel = braid::parallel::DataParallel<Single>;
  constexpr std::int64_t kHidden = 2048;
  constexpr int kSteps = 4;
  std::vector<std::unique_ptr<Row<Single, decltype(kCrossEntropy)>>> ones;
  std::vector<std::unique_ptr<Row<Parallel, decltype(kCrossEntropy)>>> twos;
  std::vector<std::function<double()>> contenders;
  for (const std::int64_t count : rows) {
    Single model = make_mlp(kHidden);
    braid::to(model, device);
    ones.push_back(std::make_unique<Row<Single, decltype(kCrossEntropy)>>(
        std::move(model), input(count, 784).to(device), classes(count, 10).to(device),
        kCrossEntropy));
    Single other = make_mlp(kHidden);
    braid::to(other, device);
    twos.push_back(std::make_unique<Row<Parallel, decltype(kCrossEntropy)>>(
        Parallel(std::move(other), {device, partner}), input(count, 784).to(device),
        classes(count, 10).to(device), kCrossEntropy));
    const auto time = [device](auto& row) {
      return time_step(kSteps, [&] {
        row.step();
        braid::synchronize(device);
      });
    };
    contenders.emplace_back([time, &row = *ones.back()] { return time(row); });
    contenders.emplace_back([time, &row = *twos.back()] { return time(row); });
  }
  const std::vector<Series> series = interleave(rounds, contenders);
  std::vector<MeasuredStep> steps;
  for (std::size_t i = 0; i < rows.size(); ++i)
    steps.push_back({rows[i], series[2 * i].time(), series[2 * i + 1].time(),
                     std::max(series[2 * i].noise(), series[2 * i + 1].noise())});
  return steps;
}

}  // namespace bench::transfer
