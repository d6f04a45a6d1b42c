// multinomial: draws indices by weights, with or without replacement.
#include <cmath>

#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/scan.hpp>
#include <braid/core/ops/sort.hpp>
#include <braid/core/random.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// Throws ArgumentError for invalid weights. `largest`: the largest weight of each row.
void check_weights(const Tensor& weights, const Tensor& largest, std::int64_t samples,
                   bool with_replacement) {
  if (weights.numel() == 0) return;  // no rows
  // The minimum of numbers with a NaN is NaN, which is not >= 0.
  if (const double least = min(weights).item<double>(); !(least >= 0))
    throw ArgumentError(str("multinomial: expected weights that are not negative, got ", least));
  if (const double most = max(largest).item<double>(); !std::isfinite(most))
    throw ArgumentError(str("multinomial: expected finite weights, got ", most));
  if (!(min(largest).item<double>() > 0))
    throw ArgumentError("multinomial: expected a weight above 0 in each row, got a row of zeros");
  if (with_replacement) return;
  const Tensor fewest = min(count_nonzero(weights, {-1}));
  if (const std::int64_t above = fewest.item<std::int64_t>(); above < samples)
    throw ArgumentError(str("multinomial: expected at least ", samples,
                            " weights above 0 to draw as often without replacement, got ", above));
}

}  // namespace

Tensor multinomial(const Tensor& weights, std::int64_t samples, bool replacement,
                   std::optional<std::uint64_t> seed) {
  ops::check_floating("multinomial", weights);
  if (weights.dim() != 1 && weights.dim() != 2)
    throw ShapeError(
        str("multinomial: expected weights of one or two dimensions, got ", weights.shape()));
  const std::int64_t categories = weights.size(-1);
  if (samples < 1) throw ArgumentError(str("multinomial: expected samples >= 1, got ", samples));
  if (categories < 1)
    throw ShapeError(str("multinomial: expected at least one category, got ", weights.shape()));
  if (!replacement && samples > categories)
    throw ArgumentError(str("multinomial: expected at most ", categories,
                            " samples of as many categories without replacement, got ", samples));

  const NoGrad guard;
  const Tensor w = weights.to(DType::float64), largest = amax(w, {-1}, true);
  const bool with_replacement = replacement || samples == 1;
  check_weights(w, largest, samples, with_replacement);
  Shape shape = w.shape();
  const auto draws = [&](std::int64_t last) {  // in [0, 1)
    shape[shape.rank() - 1] = last;
    return rand(shape, {.device = w.device(), .dtype = DType::float64, .seed = seed});
  };
  if (with_replacement) {
    // The total is at least 1. So a draw times the total is less than the total, even if rounded.
    const Tensor running = cumsum(w / largest, -1), total = running.narrow(-1, categories - 1, 1);
    // the number of running sums that are <= the draw
    return le(running.unsqueeze(-2), (draws(samples) * total).unsqueeze(-1)).sum({-1});
  }
  // Draws an exponential time of rate w for each category, and takes the earliest ones. Compares
  // logarithms, so that weights may have any magnitude.
  const Tensor unit = neg(log(1.0 - draws(categories))) + 1e-300;
  return topk(log(unit) - log(w), samples, -1, false).indices;
}

}  // namespace braid
