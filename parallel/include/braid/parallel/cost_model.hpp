#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

// The cost model of a data-parallel step. It is fitted to measured steps, so that measurements can
// be compared with predictions and other sizes can be predicted.
namespace braid::parallel {

/// The seconds of a step by phase.
struct PhaseSeconds {
  double scatter = 0, replicate = 0, compute = 0, gather = 0, reduce = 0, optimizer = 0;
  /// The rest. For a device: it waits for others, or for the program's own work between the calls
  /// (the loss, if no span is around it). For a whole step: no device is in any phase.
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
  /// per step; while several devices are busy at the same time, compute hides the other phases
  PhaseSeconds seconds = {};
  /// how much slower a device computes because the others compute too; see CostModel::predict
  double slowdown = 1;
  /// bytes moved in a step, over all devices
  double scatter_bytes = 0, replicate_bytes = 0, gather_bytes = 0, reduce_bytes = 0;
};

/// How weights are copied to the devices and gradients are summed from them.
enum class Collective : std::uint8_t {
  /// device 0 exchanges with each other device in sequence: (n - 1) (latency + bytes / rate)
  star,
  ring  ///< all devices at the same time: latency + bytes / rate
};

/// Seconds = latency + amount · slope. Both are at least 0.
struct CostLine {
  double latency = 0;  ///< s
  double slope = 0;    ///< s per unit
  [[nodiscard]] double operator()(double amount) const noexcept { return latency + amount * slope; }
};

/// A measured time of an amount: the bytes of a copy, or the rows of a batch.
struct CostPoint {
  double amount = 0;
  double seconds = 0;
};
/// Fits a line by least squares of relative errors, so that short times count as much as long ones.
/// Ignores points of 0 s. If all points have the same amount, the line goes through the origin.
/// Without points the line is 0.
[[nodiscard]] CostLine fit_cost_line(std::span<const CostPoint> points);
/// Returns the largest |line(amount) / seconds - 1| over the points: the misfit of the worst point.
/// Ignores points of 0 s.
[[nodiscard]] double worst_misfit(const CostLine& line, std::span<const CostPoint> points) noexcept;

/// T(n, B) = scatter + replicate + slowdown · c(⌈B/n⌉) + gather + reduce + optimizer + other, and
/// T(1, B) = c(B) + optimizer + other, where
///
///   c(b)       max(floor, c0 + c1 b): forward and backward of b rows on one device
///   scatter    latency + bytes / rate, for (n - 1)/n of the batch
///   gather     latency + bytes / rate, for all outputs and their gradients
///   replicate  copies S bytes to each of n - 1 devices, as the Collective says
///   reduce     sums S bytes from each of n - 1 devices, as the Collective says
///   other      the time in which no device is in a phase: a line over B; for n > 1 plus a line
///              over n - 1
///
/// The optimizer's term is the median over the samples. Every other term is fitted by least squares
/// of relative errors to the samples that have it. If all samples have the same size, the line goes
/// through the origin.
class CostModel {
 public:
  /// Throws ArgumentError if there are no samples, or if a sample has no devices, no rows, or a
  /// slowdown that is below 1 or not finite.
  [[nodiscard]] static CostModel fit(std::span<const CostSample> samples,
                                     Collective collective = Collective::star);

  /// Returns the terms of a step; `idle` is the term `other` above. `slowdown` = T of n independent
  /// runs in parallel / T of one run. It is above 1 for logical devices that share cores, caches or
  /// a GPU. Throws ArgumentError unless devices >= 1, batch >= 1 and slowdown >= 1, or if devices >
  /// 1 and no sample of the fit has several devices.
  [[nodiscard]] PhaseSeconds predict(int devices, std::int64_t batch, double slowdown = 1) const;
  /// Returns the smallest batch, a multiple of `devices`, from which `devices` devices are faster
  /// than one. Returns nothing if that does not happen up to 2^40 rows. Throws as predict.
  [[nodiscard]] std::optional<std::int64_t> break_even(int devices, double slowdown = 1) const;
  /// True if a sample had several devices.
  [[nodiscard]] bool knows_several() const noexcept { return several_; }

  /// over the rows of a device
  [[nodiscard]] const CostLine& compute() const noexcept { return compute_; }
  /// s; 0 if the samples show no floor
  [[nodiscard]] double compute_floor() const noexcept { return floor_; }
  [[nodiscard]] const CostLine& scatter() const noexcept { return scatter_; }  ///< over bytes
  /// star: latency per device and slope per byte; ring: latency of the whole collective
  [[nodiscard]] const CostLine& replicate() const noexcept { return replicate_; }
  [[nodiscard]] const CostLine& gather() const noexcept { return gather_; }  ///< over bytes
  /// like replicate
  [[nodiscard]] const CostLine& reduce() const noexcept { return reduce_; }
  [[nodiscard]] double optimizer() const noexcept { return optimizer_; }  ///< s
  /// over the rows of the batch
  [[nodiscard]] const CostLine& other() const noexcept { return other_; }
  /// over n - 1; added to other()
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

/// Returns the name of the largest term: `compute`, `reduce`, …; `other` for idle.
[[nodiscard]] std::string_view dominating_term(const PhaseSeconds& seconds) noexcept;
/// Returns the largest term without compute: the cost of splitting.
[[nodiscard]] std::string_view dominating_cost(const PhaseSeconds& seconds) noexcept;

}  // namespace braid::parallel
