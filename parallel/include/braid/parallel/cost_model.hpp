#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

// What a data-parallel step costs, fitted to measured steps: so that a measurement has a prediction
// beside it, and other sizes can be asked for.
namespace braid::parallel {

/// Seconds of a step by what they were spent on.
struct PhaseSeconds {
  double scatter = 0, replicate = 0, compute = 0, gather = 0, reduce = 0, optimizer = 0;
  /// In none of them. Of a device: it waits for others, or for the program's own work between the
  /// calls (the loss, if no span is around it). Of a whole step: no device is in any phase.
  double idle = 0;
  [[nodiscard]] double total() const noexcept {
    return scatter + replicate + compute + gather + reduce + optimizer + idle;
  }
  PhaseSeconds& operator*=(double factor) noexcept {
    for (double* const part : {&scatter, &replicate, &compute, &gather, &reduce, &optimizer, &idle})
      *part *= factor;
    return *this;
  }
};

/// One measured configuration.
struct CostSample {
  int devices = 1;
  std::int64_t batch = 0;  ///< rows of a step, over all devices
  /// of a step: where several devices are busy at once, compute hides the rest
  PhaseSeconds seconds = {};
  /// how much slower a device computes because the others compute too; see CostModel::predict
  double slowdown = 1;
  /// moved in a step, over all devices
  double scatter_bytes = 0, replicate_bytes = 0, gather_bytes = 0, reduce_bytes = 0;
};

/// How copies of the weights go out and sums of the gradients come in.
enum class Collective : std::uint8_t {
  /// device 0 with each of the others, one after the other: (n - 1) (latency + bytes / rate)
  star,
  ring  ///< all devices at once: latency + bytes / rate
};

/// Seconds = latency + amount · slope, neither below 0.
struct CostLine {
  double latency = 0;  ///< s
  double slope = 0;    ///< s a unit
  [[nodiscard]] double operator()(double amount) const noexcept { return latency + amount * slope; }
};

/// A measured time of an amount: bytes of a copy, rows of a batch.
struct CostPoint {
  double amount = 0;
  double seconds = 0;
};
/// The line of least squares of relative errors, so that short times count as much as long ones.
/// Points of 0 s are passed over; points of one amount only give a line through the origin, no
/// points one that is 0.
[[nodiscard]] CostLine fit_cost_line(std::span<const CostPoint> points);
/// How far the line is from the worst of the points: the largest |line(amount) / seconds - 1|.
/// Points of 0 s are passed over.
[[nodiscard]] double worst_misfit(const CostLine& line, std::span<const CostPoint> points) noexcept;

/// T(n, B) = scatter + replicate + slowdown · c(⌈B/n⌉) + gather + reduce + optimizer + other, and
/// T(1, B) = c(B) + optimizer + other, where
///
///   c(b)       max(floor, c0 + c1 b): forward and backward of b rows on one device scatter
///   latency + bytes / rate, (n - 1)/n of the batch; gather all of the outputs and their gradients,
///   likewise replicate  S bytes of copies to each of n - 1 devices, reduce S bytes from each: by
///   the collective other      the time in which no device is in a phase: a line over B, and for n
///   > 1 one over n - 1
///
/// Every term is fitted by least squares of relative errors to the samples that have it; with
/// samples of one size only, by a line through the origin.
class CostModel {
 public:
  /// Throws ArgumentError if there are no samples, or one has no devices, no rows or a slowdown
  /// below 1 or not finite.
  [[nodiscard]] static CostModel fit(std::span<const CostSample> samples,
                                     Collective collective = Collective::star);

  /// The terms of a step; `idle` is what other is above. `slowdown` = T of n independent runs at
  /// once / T of one: logical devices that share cores, caches or a GPU have more than 1. Throws
  /// ArgumentError unless devices >= 1, batch >= 1 and slowdown >= 1; devices > 1 need a sample
  /// with several devices in the fit.
  [[nodiscard]] PhaseSeconds predict(int devices, std::int64_t batch, double slowdown = 1) const;
  /// The batch from which on `devices` devices are faster than one, a multiple of `devices`; none
  /// if that never happens (up to 2^40 rows). Throws as predict.
  [[nodiscard]] std::optional<std::int64_t> break_even(int devices, double slowdown = 1) const;
  /// Was there a sample with several devices?
  [[nodiscard]] bool knows_several() const noexcept { return several_; }

  /// over the rows of a device
  [[nodiscard]] const CostLine& compute() const noexcept { return compute_; }
  /// s; 0: none seen
  [[nodiscard]] double compute_floor() const noexcept { return floor_; }
  [[nodiscard]] const CostLine& scatter() const noexcept { return scatter_; }  ///< over bytes
  /// latency a device and slope a byte; with a ring, of all
  [[nodiscard]] const CostLine& replicate() const noexcept { return replicate_; }
  [[nodiscard]] const CostLine& gather() const noexcept { return gather_; }  ///< over bytes
  /// as replicate
  [[nodiscard]] const CostLine& reduce() const noexcept { return reduce_; }
  [[nodiscard]] double optimizer() const noexcept { return optimizer_; }  ///< s
  /// over the rows of the batch
  [[nodiscard]] const CostLine& other() const noexcept { return other_; }
  /// over n - 1, beside other()
  [[nodiscard]] const CostLine& other_of_group() const noexcept { return group_; }
  [[nodiscard]] Collective collective() const noexcept { return collective_; }

 private:
  void check(int devices, std::int64_t batch, double slowdown) const;
  [[nodiscard]] double compute_of(double rows) const noexcept;

  CostLine compute_, scatter_, replicate_, gather_, reduce_, other_, group_;
  double floor_ = 0, optimizer_ = 0;
  double scatter_per_row_ = 0, gather_per_row_ = 0;          // bytes
  double replicate_per_device_ = 0, reduce_per_device_ = 0;  // bytes
  Collective collective_ = Collective::star;
  bool several_ = false;
};

/// The name of the largest term: `compute`, `reduce`, …; `other` for idle.
[[nodiscard]] std::string_view dominating_term(const PhaseSeconds& seconds) noexcept;
/// The same without compute: what splitting costs.
[[nodiscard]] std::string_view dominating_cost(const PhaseSeconds& seconds) noexcept;

}  // namespace braid::parallel
