#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <braid/core/trace.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/cost_model.hpp>
#include <braid/parallel/devices.hpp>

// Measures the time and the memory of data-parallel steps, explains them by a cost model, and
// writes them as text, JSON, a Chrome trace and an HTML page.
namespace braid::parallel {

template <class O> class ReplicatedOptimizer;
class ProcessCommunicator;
struct RankRun;

/// The phases and bytes of one replica in one step. The seconds add up to those of the step.
struct ReplicaStep {
  std::int64_t step = 0;
  int replica = 0;
  Device device;
  PhaseSeconds seconds = {};
  /// cached_bytes: the weights that were already on the device
  std::uint64_t scatter_bytes = 0, replicate_bytes = 0, cached_bytes = 0, gather_bytes = 0,
                reduce_bytes = 0;
};

/// The bytes on a device by kind. Each kind is measured separately, so they need not add up to the
/// peak.
struct DeviceMemory {
  Device device;
  std::size_t parameters = 0;  ///< the model's own tensors, including buffers
  std::size_t gradients = 0;   ///< of the parameters, when they were counted
  std::size_t optimizer = 0;   ///< the optimizer's state
  /// what forwards keep in memory until backward, including the replicas' outputs: the sum over a
  /// step's forwards, the maximum over the steps
  std::size_t activations = 0;
  /// copies of the weights that are kept for the next step, after the last forward; with
  /// ReplicatedOptimizer the device's own weights
  std::size_t replica_cache = 0;
  /// gathered outputs: the sum over a step's forwards, the maximum over the steps
  std::size_t outputs = 0;
  std::size_t peak = 0;  ///< measured by the allocator over the run
};

/// The measured steps of one batch size over one list of devices.
struct MeasuredRun {
  std::vector<Device> devices;
  std::int64_t batch = 0;       ///< rows of a step, over all devices
  double seconds = 0;           ///< per step: as set by set_seconds, else recorded_seconds
  double recorded_seconds = 0;  ///< per step, the median of the recorded ones; 0 without steps
  PhaseSeconds
      /// the time of a step by phase: medians over the steps, scaled to add up to recorded_seconds;
      /// while any device computes, the time counts as compute
      critical;
  std::int64_t steps = 0;  ///< recorded; the medians leave out the first of several
  std::vector<ReplicaStep> replicas;
  std::vector<DeviceMemory> memory;  ///< empty if it was not counted
  std::vector<trace::Record> spans;  ///< times in ns since the run began
  std::uint64_t dropped = 0;         ///< spans lost because the buffer was full
  /// the recorder's share of a step: the busiest thread's number of spans times the cost of one;
  /// 0.01 = 1 %
  double overhead = 0;
  /// true for logical devices: several on one processor or one GPU, or emulated ones
  bool simulated = false;
  /// expected for devices that share cores or a GPU, if nothing better is measured
  double slowdown = 1;
  /// of several processes, by rank; else null. braid/parallel/rank_run.hpp has the type.
  std::shared_ptr<const std::vector<RankRun>> ranks = nullptr;
};

/// The efficiency of one configuration, and the best that these devices can reach.
struct Efficiency {
  enum class Scaling : std::uint8_t {
    strong,  ///< T(1) / (n T(n)) with the same total batch
    weak     ///< T(1) / T(n) with the same batch per device
  } scaling = Scaling::strong;
  int devices = 1;
  std::int64_t batch = 0;  ///< rows of a step of the n devices
  double value = 0;
  /// the same for n independent runs of ⌈batch / n⌉ rows in parallel; none if not measured
  std::optional<double> ceiling = {};
  bool simulated = false;
};

/// A run's measured speed and the model's prediction.
struct Prediction {
  int devices = 1;
  std::int64_t batch = 0;
  double measured = 0;   ///< samples/s
  double predicted = 0;  ///< samples/s, by the model of all runs
  /// samples/s, by a model of the other runs only; none if there are too few
  std::optional<double> predicted_apart = {};
  PhaseSeconds terms = {};  ///< the model's terms, s
  /// the batch from which this many devices are faster than one; none for one device, or if that
  /// never happens
  std::optional<std::int64_t> break_even = {};
  bool simulated = false;
};

/// Measures data-parallel steps and reports them:
///
///     parallel::DataParallelReport report("mlp");
///     const std::vector<Device> all = devices();
///     for (int n = 1; n <= device_count(); ++n) {
///       const std::vector<Device> list(all.begin(), all.begin() + n);
///       …                                           // a DataParallel over the list, an optimizer
///       auto recording = report.record(list, 256);  // a batch of 256 rows
///       for (int i = 0; i < 10; ++i) {
///         const auto step = recording.step();
///         …                                         // forward, loss, backward, optimizer.step()
///       }
///       recording.count_memory(model, optimizer);   // before zero_grad
///     }
///     report.write("split-report");  // split-report.txt, .json, .trace.json and .html
///
/// A step ends when its devices have no queued work left. On CUDA devices, including emulated ones,
/// spans have the device's time, measured by events. CPU devices have finished when a call returns,
/// so their spans have the host's time. For n = 1 use a DataParallel over one device, so that its
/// forward has a span. Use a report from one thread at a time. A process can make only one
/// recording at a time.
class DataParallelReport {
 public:
  explicit DataParallelReport(std::string title = "DataParallel",
                              Collective collective = Collective::star);

  class Recording;
  /// Records until the Recording ends. `batch`: the rows of a step, over all devices. Resets the
  /// devices' memory peaks. Throws ArgumentError for no devices or for batch < 1, DeviceError for a
  /// device that does not exist or is listed twice, Error if another recording is active.
  [[nodiscard]] Recording record(const DeviceList& devices, std::int64_t batch);

  /// Adds the measured time of a step of `rows` rows when `devices` independent runs, one per
  /// device, ran in parallel: the best that the hardware can do. Throws ArgumentError unless
  /// devices >= 2, rows >= 1 and seconds is positive and finite.
  void add_independent(int devices, std::int64_t rows, double seconds);

  [[nodiscard]] const std::string& title() const noexcept { return title_; }
  [[nodiscard]] const std::vector<MeasuredRun>& runs() const noexcept { return runs_; }
  /// Compares every run of several devices with the runs of one device. Returns a strong efficiency
  /// if one of these has the same total batch, and a weak one if one has the same batch per device.
  [[nodiscard]] std::vector<Efficiency> efficiencies() const;
  /// Throws ArgumentError if no run has steps.
  [[nodiscard]] CostModel cost_model() const;
  /// Returns a prediction for each run that has steps.
  [[nodiscard]] std::vector<Prediction> predictions() const;
  /// Returns how much slower a device computes when n of them compute. This is the ratio of a time
  /// from add_independent to T(1) of the same rows, taken at the number of rows nearest to the
  /// run's. Without such a measurement for n, it is the value expected from shared cores or a
  /// shared GPU. At least 1.
  [[nodiscard]] double slowdown(const MeasuredRun& run) const;

  /// Returns tables for a terminal.
  [[nodiscard]] std::string text() const;
  /// Returns one JSON object: title, simulated, runs (each with its replicas, its memory and, if it
  /// has steps, `predicted` in samples/s), efficiencies, cost_model.
  [[nodiscard]] std::string json() const;
  /// Returns all spans in the Trace Event Format, for ui.perfetto.dev or chrome://tracing: a
  /// process per run, a track per device.
  [[nodiscard]] std::string chrome_trace() const;
  /// Returns one self-contained HTML page: timelines, efficiency, memory, tables.
  [[nodiscard]] std::string html() const;
  /// Writes all four: `stem`.txt, .json, .trace.json and .html. Each file is written completely or
  /// not at all. Throws IoError.
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
  // Returns 0 if not measured.
  [[nodiscard]] double independent_seconds(int devices, std::int64_t rows) const;
  [[nodiscard]] double slowdown(const MeasuredRun& run, const MeasuredRun* without) const;
  [[nodiscard]] std::vector<CostSample> samples(const MeasuredRun* without = nullptr) const;

  std::string title_;
  Collective collective_;
  std::vector<MeasuredRun> runs_;
  std::vector<Independent> independent_;
};

/// A run that is being measured. It is added to the report when it ends.
class DataParallelReport::Recording {
 public:
  /// Calls finish() if it was not called. Its exceptions become warnings.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Measures a step during its lifetime. The destructor waits for the devices.
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
  /// Begins a step, which ends with the returned object.
  [[nodiscard]] Step step() { return Step(*this); }

  /// Sets T(n) as timed elsewhere without a recorder. Efficiency and predictions use it, divided
  /// into the recorded phases. Throws ArgumentError unless it is positive and finite.
  void set_seconds(double seconds);
  /// Counts the memory of model and optimizer by device. Call it after a backward, before
  /// zero_grad.
  template <class M> void count_memory(const M& model) { count(tree::flatten(model), {}, {}); }
  template <class M, class O> void count_memory(const M& model, const O& optimizer) {
    const tree::Flat state = tree::flatten(optimizer);
    count(tree::flatten(model), {&state, 1}, {});
  }
  /// Counts the optimizers of all devices.
  template <class M, class O>
  void count_memory(const M& model, const ReplicatedOptimizer<O>& optimizer) {
    std::vector<tree::Flat> states;
    for (const auto& one : optimizer.all()) states.push_back(tree::flatten(*one));
    count(tree::flatten(model), states, optimizer.weights());
  }
  /// Ends the recording and adds the run to the report. Throws the error of a lost device.
  void finish();
  /// The same on each of several processes: rank 0's run also gets what the others recorded. All
  /// ranks call it, also those that failed. The tables are those of each rank's own devices.
  ///
  /// Throws    CommError, on all ranks, if they cannot exchange their spans or one sent malformed
  ///           ones
  void finish(ProcessCommunicator& ranks);

 private:
  friend class DataParallelReport;
  Recording(DataParallelReport& report, std::vector<Device> devices, std::int64_t batch);
  void count(const tree::Flat& model, std::span<const tree::Flat> optimizers,
             std::span<const std::vector<Tensor>> copies);

  DataParallelReport& report_;
  MeasuredRun run_;
  std::optional<trace::Recording> recording_;
  // when the recording began, by the host's clock, and how far off it may be
  std::int64_t began_ = 0, began_uncertainty_ = 0;
  std::vector<std::int64_t> marks_;  // see mark_beginning
  void mark_beginning();
  void take_marks();
  bool counted_ = false;
};

}  // namespace braid::parallel
