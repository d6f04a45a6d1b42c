// Records the steps for the report.
#include <optional>

#include "split/results.hpp"

namespace bench::split {

using braid::parallel::DataParallelReport;

std::vector<std::pair<Config, Predicted>> write_report(const Net& net, const Setup& setup,
                                                       Update update, const Measured& measured,
                                                       const std::string& stem) {
  constexpr int kRecordedSteps = 8;
  DataParallelReport report("bench_split: " + net.name + " (" + net.about + "), update " +
                            name_of(update));
  std::vector<std::pair<Config, Predicted>> list;
  for (const Config& config : configurations(net, setup)) {
    const Time time = measured.run(config);
    if ((config.devices > 1 && config.update != update) || !(time.us > 0)) continue;
    const std::vector<braid::Device> devices = first_devices(config.devices);
    // the only training that exists, because the report counts the devices' memory
    const auto training = net.make(devices, config.rows, config.update);
    (void)training->step();
    auto recording = report.record(devices, config.rows);
    recording.set_seconds(time.us * 1e-6);
    for (int i = 0; i < kRecordedSteps; ++i) {
      const auto step = recording.step();
      (void)training->step();
    }
    training->count_memory(recording);
    recording.finish();
    list.push_back({config, {}});
  }
  for (const Timed<Config>& timed : measured.independent)
    if (const double us = timed.series.time(); us > 0)
      report.add_independent(timed.key.devices, timed.key.rows, us * 1e-6);
  const std::vector<braid::parallel::Prediction> predictions = report.predictions();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::optional<double> apart = predictions.at(i).predicted_apart;
    list[i].second = {apart.value_or(predictions[i].predicted), apart.has_value()};
  }
  report.write(stem);
  return list;
}

}  // namespace bench::split
