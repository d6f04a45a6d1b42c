#pragma once
#include <string>
#include <utility>
#include <vector>

#include "split/measure.hpp"
#include "support/json.hpp"

// Evaluates the times: rows with their bars, and the report with its predictions.
namespace bench::split {

/// The values that must be reached.
struct Bars {
  static constexpr double kStrong = 0.88, kWeak = 0.90;  ///< efficiency
  static constexpr double kOfCeiling = 0.97;             ///< stretch goal: fraction of the ceiling
  static constexpr double kDdp = 1.3, kThreads = 1.0;    ///< samples/s, as a multiple of the peer's
  static constexpr double kPrediction = 0.2, kOverhead = 0.03;
};

/// The cost model's prediction for a configuration.
struct Predicted {
  double samples_per_s = 0;
  bool apart = false;  ///< by a model fitted to the other runs only
};

/// Records steps of every configuration with this update and combines them with the times that were
/// measured without the recorder. Writes <stem>.txt, .json, .trace.json and .html. Returns the
/// predictions in the order of the configurations.
[[nodiscard]] std::vector<std::pair<Config, Predicted>> write_report(const Net& net,
                                                                     const Setup& setup,
                                                                     Update update,
                                                                     const Measured& measured,
                                                                     const std::string& stem);

enum class Verdict { none, met, missed, noisy };  ///< none: not evaluated
/// Compares a value with its bar, which it must reach or, for Bound::most, not exceed. The verdict
/// is noisy if the value is closer to the bar than `uncertainty`.
enum class Bound { least, most };
[[nodiscard]] Verdict judge(double value, double bar, double uncertainty,
                            Bound bound = Bound::least);
[[nodiscard]] const char* name_of(Verdict verdict);

struct Table {
  std::vector<Json> rows;
  double noise = 0;
  /// numbers of bars; unjudged: no peer gave a time, or devices share cores
  int met = 0, missed = 0, noisy = 0, unjudged = 0;
};
/// Prints the rows of one net and adds them to the table.
void add_rows(const Net& net, const Setup& setup, Update update, const Measured& measured,
              const std::vector<std::pair<Config, Predicted>>& predictions, Table& table);
void add_overhead(const Net& net, const Setup& setup, Update update, const Overhead& overhead,
                  Table& table);

}  // namespace bench::split
