#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <braid/core/trace.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/cost_model.hpp>
#include <braid/parallel/devices.hpp>

// Where the time and the memory of data-parallel steps go: measured, explained by a model, and
// written down as text, JSON, a Chrome trace and a page.
namespace braid::parallel {

template <class O> class LocalUpdate;

/// What one replica did in one step. The seconds add up to those of the step.
struct ReplicaStep {
  std::int64_t step = 0;
  int replica = 0;
  Device device;
  PhaseSeconds seconds = {};
  /// cached: of the weights, there already
  std::uint64_t scatter_bytes = 0, replicate_bytes = 0, cached_bytes = 0, gather_bytes = 0,
                reduce_bytes = 0;
};

/// Bytes on a device by what they are for. The kinds are found one by one, so that they need not
/// add up to the peak.
struct DeviceMemory {
  Device device;
  std::size_t parameters = 0;  ///< with the buffers: the model's own tensors
  std::size_t gradients = 0;   ///< of the parameters, when they were counted
  std::size_t optimizer = 0;   ///< its state
  /// what forwards leave until backward, the replicas' outputs too: of a step's forwards together,
  /// the most over the steps
  std::size_t activations = 0;
  /// copies of the weights that stay for the next step, as the last forward left them; with
  /// Update::local the device's own
  std::size_t replica_cache = 0;
  /// joined outputs of a step, of its forwards together: the most over the steps
  std::size_t outputs = 0;
  std::size_t peak = 0;  ///< measured by the allocator over the run
};

/// Steps with one batch over one list of devices.
struct MeasuredRun {
  std::vector<Device> devices;
  std::int64_t batch = 0;       ///< rows of a step, over all devices
  double seconds = 0;           ///< a step: as it was set, else the median of the recorded ones
  double recorded_seconds = 0;  ///< a step, median of the recorded ones; 0 without steps
  PhaseSeconds
      /// where a step's time goes, each the median over the steps, then scaled to add up to
      /// recorded_seconds; where devices are busy with different things, compute counts
      critical;
  std::int64_t steps = 0;  ///< recorded; the first of several is not in the medians
  std::vector<ReplicaStep> replicas;
  std::vector<DeviceMemory> memory;  ///< empty if it was not counted
  std::vector<trace::Record> spans;  ///< times in ns since the run began
  std::uint64_t dropped = 0;         ///< spans that found no room
  /// the recorder's share of a step: spans of the busiest thread, each at what one costs here; 0.01
  /// = 1 %
  double overhead = 0;
  /// logical devices: several on one processor or one GPU, or emulated ones
  bool simulated = false;
  /// expected of devices that share cores or a GPU, where nothing better is measured
  double slowdown = 1;
};

/// Of one configuration, beside the best that these devices can give.
struct Efficiency {
  enum class Scaling : std::uint8_t {
    strong,  ///< T(1) / (n T(n)) at an equal batch in all
    weak     ///< T(1) / T(n) at an equal batch a device
  } scaling = Scaling::strong;
  int devices = 1;
  std::int64_t batch = 0;  ///< rows of a step of the n devices
  double value = 0;
  /// the same for n independent runs of ⌈batch / n⌉ rows at once; none if they were not measured
  std::optional<double> ceiling = {};
  bool simulated = false;
};

/// A run's measurement beside the model's.
struct Prediction {
  int devices = 1;
  std::int64_t batch = 0;
  double measured = 0;   ///< samples/s
  double predicted = 0;  ///< samples/s, by the model of all runs
  /// samples/s, by a model of the other runs alone; none where those are too few
  std::optional<double> predicted_apart = {};
  PhaseSeconds terms = {};  ///< the model's, s
  /// the batch from which on so many devices are faster than one; none for one device, or if that
  /// never happens
  std::optional<std::int64_t> break_even = {};
  bool simulated = false;
};

/// Measures data-parallel steps and reports them:
///
///     parallel::DataParallelReport report("mlp");
///     for (int n = 1; n <= 4; ++n) {
///       …                                               // a DataParallel over n devices, its
///       optimizer, its batch of 256 rows
///       auto recording = report.record(list, 256);
///       for (int i = 0; i < 10; ++i) {
///         const auto step = recording.step();
///         …                                             // forward, loss, backward,
///         optimizer.step()
///       }
///       recording.count_memory(model, optimizer);       // before zero_grad
///     }
///     report.write("split-report");                     // split-report.txt, .json, .trace.json
///     and .html
///
/// A step ends when its devices have nothing queued any more. On CUDA devices (emulated too) spans
/// have the devices' own time, by events; on CPU devices, which are done when a call returns, the
/// host's. Use a DataParallel over one device for n = 1, so that its forward has a span.
/// One thread at a time, and one recording at a time in a process.
class DataParallelReport {
 public:
  explicit DataParallelReport(std::string title = "DataParallel",
                              Collective collective = Collective::star);

  class Recording;
  /// Records until the Recording ends. `batch`: rows of a step, over all devices. Resets the
  /// devices' memory peaks. Throws ArgumentError for no devices or for batch < 1, DeviceError for a
  /// device that does not exist or is there twice, Error if something else is being recorded.
  [[nodiscard]] Recording record(const DeviceList& devices, std::int64_t batch);

  /// A step of `rows` rows took so long when `devices` runs that know nothing of each other, one a
  /// device, went on at the same time: what the hardware gives at best. Throws ArgumentError unless
  /// devices >= 2, rows >= 1 and seconds is positive and finite.
  void add_independent(int devices, std::int64_t rows, double seconds);

  [[nodiscard]] const std::string& title() const noexcept { return title_; }
  [[nodiscard]] const std::vector<MeasuredRun>& runs() const noexcept { return runs_; }
  /// Strong for every run of several devices that has a run of one device with the same batch, weak
  /// for every one that has it with the same batch a device.
  [[nodiscard]] std::vector<Efficiency> efficiencies() const;
  /// Throws ArgumentError without a run that has steps.
  [[nodiscard]] CostModel cost_model() const;
  /// One for each run that has steps.
  [[nodiscard]] std::vector<Prediction> predictions() const;
  /// How much slower a device computes when n of them do: measured (add_independent) beside T(1) of
  /// the same rows, else from the nearest such measurement for n, else what sharing cores or a GPU
  /// lets expect. At least 1.
  [[nodiscard]] double slowdown(const MeasuredRun& run) const;

  /// Tables for a terminal.
  [[nodiscard]] std::string text() const;
  /// One object: title, simulated, runs (each with its replicas, memory and, where it has steps,
  /// `predicted`, samples/s), efficiencies, cost_model.
  [[nodiscard]] std::string json() const;
  /// All spans in the Trace Event Format, for ui.perfetto.dev or chrome://tracing: a process a run,
  /// a track a device.
  [[nodiscard]] std::string chrome_trace() const;
  /// One page that needs nothing else: timelines, efficiency, memory, tables.
  [[nodiscard]] std::string html() const;
  /// All of them: `stem`.txt, .json, .trace.json and .html, each whole or not at all. Throws
  /// IoError.
  void write(const std::string& stem) const;

 private:
  friend class Recording;
  struct Independent {
    int devices;
    std::int64_t rows;
    double seconds;
  };
  [[nodiscard]] const MeasuredRun* single(std::int64_t batch,
                                          const MeasuredRun* without = nullptr) const;
  // 0: not measured
  [[nodiscard]] double independent_seconds(int devices, std::int64_t rows) const;
  [[nodiscard]] double slowdown(const MeasuredRun& run, const MeasuredRun* without) const;
  [[nodiscard]] std::vector<CostSample> samples(const MeasuredRun* without = nullptr) const;

  std::string title_;
  Collective collective_;
  std::vector<MeasuredRun> runs_;
  std::vector<Independent> independent_;
};

/// One run that is being measured; it goes into the report when it ends.
class DataParallelReport::Recording {
 public:
  /// finish(), if that was not called; what it throws becomes a warning.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// A step, while it lives. Its end waits for the devices.
  class Step {
   public:
    explicit Step(Recording& recording);
    ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Recording& recording_;
    trace::Span span_;
  };
  [[nodiscard]] Step step() { return Step(*this); }

  /// T(n) as it was timed elsewhere, without a recorder: efficiency and predictions are of it, with
  /// the recorded phases as its parts. Throws ArgumentError unless it is positive and finite.
  void set_seconds(double seconds);
  /// Counts what model and optimizer hold now, by device: after a backward, before zero_grad.
  template <class M> void count_memory(const M& model) { count(tree::flatten(model), {}, {}); }
  template <class M, class O> void count_memory(const M& model, const O& optimizer) {
    const tree::Flat state = tree::flatten(optimizer);
    count(tree::flatten(model), {&state, 1}, {});
  }
  /// Those of all devices.
  template <class M, class O> void count_memory(const M& model, const LocalUpdate<O>& optimizer) {
    std::vector<tree::Flat> states;
    for (const auto& one : optimizer.all()) states.push_back(tree::flatten(*one));
    count(tree::flatten(model), states, optimizer.weights());
  }
  /// Ends the recording and adds the run to the report. Throws what a lost device throws.
  void finish();

 private:
  friend class DataParallelReport;
  Recording(DataParallelReport& report, std::vector<Device> devices, std::int64_t batch);
  void count(const tree::Flat& model, std::span<const tree::Flat> optimizers,
             std::span<const std::vector<Tensor>> copies);

  DataParallelReport& report_;
  MeasuredRun run_;
  std::optional<trace::Recording> recording_;
  bool counted_ = false;
};

}  // namespace braid::parallel
