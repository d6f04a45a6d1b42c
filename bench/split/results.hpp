#pragma once
#include <string>
#include <utility>
#include <vector>

#include "split/measure.hpp"
#include "support/json.hpp"

// What follows from the times: rows beside their bars, and the report with its predictions.
namespace bench::split {

/// What has to be reached.
struct Bars {
  static constexpr double kStrong = 0.88, kWeak = 0.90;  ///< efficiency
  static constexpr double kOfCeiling = 0.97;             ///< the stretch: this part of the ceiling
  static constexpr double kDdp = 1.3, kThreads = 1.0;    ///< samples/s, times the peer's
  static constexpr double kPrediction = 0.2, kOverhead = 0.03;
};

/// The model's answer for a configuration, samples/s.
struct Predicted {
  double samples_per_s = 0;
  bool apart = false;  ///< by a model of the other runs alone, which has not seen this one
};

/// Records steps of every configuration of that update, beside the times that were measured without
/// the recorder; writes <stem>.txt, .json, .trace.json and .html, and gives the predictions in the
/// order of the configurations.
[[nodiscard]] std::vector<std::pair<Config, Predicted>> write_report(const Net& net,
                                                                     const Setup& setup,
                                                                     Update update,
                                                                     const Measured& measured,
                                                                     const std::string& stem);

enum class Verdict { none, met, missed, noisy };  ///< none: not judged
/// A figure beside its bar, which it must reach, or, for Bound::most, not exceed. Nearer to the bar
/// than `uncertainty` it says nothing.
enum class Bound { least, most };
[[nodiscard]] Verdict judge(double value, double bar, double uncertainty,
                            Bound bound = Bound::least);
[[nodiscard]] const char* name_of(Verdict verdict);

struct Table {
  std::vector<Json> rows;
  double noise = 0;
  /// bars; unjudged: no peer gave a time, or devices share cores
  int met = 0, missed = 0, noisy = 0, unjudged = 0;
};
/// Prints the rows of one net and adds them to the table.
void add_rows(const Net& net, const Setup& setup, Update update, const Measured& measured,
              const std::vector<std::pair<Config, Predicted>>& predictions, Table& table);
void add_overhead(const Net& net, const Setup& setup, Update update, const Overhead& overhead,
                  Table& table);

}  // namespace bench::split
