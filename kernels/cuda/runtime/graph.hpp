#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <braid/core/internal/step_capture.hpp>
#include <braid/kernels/cuda.hpp>

#include "cuda/runtime/stream.hpp"

namespace braid::cuda {

class CudaDevice;

/// A CUDA graph that stream capture records, with a table of values on the device. Kernels read
/// from the table what differs from replay to replay (record_value in cuda/record.hpp). Each entry
/// has a copy on the host. If one has changed, all are copied to the device before a launch.
class CudaGraph final : public detail::StepRecorder {
 public:
  explicit CudaGraph(CudaDevice& device);
  ~CudaGraph() override;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  [[nodiscard]] bool begin(detail::ReplayFunctions& functions) override;
  [[nodiscard]] const std::shared_ptr<Stream>& stream() const noexcept override { return stream_; }
  void end() override;
  void cancel() noexcept override;
  void follow(Stream& stream) override;
  void launch(Stream& stream) override;
  [[nodiscard]] const RandomShift* random_shift() const noexcept override;
  void set_random_shift(const RandomShift& shift) noexcept override;
  [[nodiscard]] const char* changed_setting() const noexcept override;

  /// See record_value.
  void* add_value(const void* first, std::size_t bytes, std::function<void(void*)> update);

  static constexpr std::size_t kTableBytes = std::size_t{64} << 10;

 private:
  [[nodiscard]] CudaStream& own() const noexcept { return static_cast<CudaStream&>(*stream_); }
  [[nodiscard]] std::size_t reserve(std::size_t bytes);

  CudaDevice& device_;
  std::shared_ptr<Stream> stream_;
  detail::ReplayFunctions* functions_ = nullptr;  // while it records
  cudaGraphExec_t instance_ = nullptr;
  Ref<Storage> table_;
  std::vector<std::byte> values_, on_device_;  // the host's copy, and what was copied last
  GemmEngine engine_ = GemmEngine::automatic;  // when the recording began
  const Stream* told_ = nullptr;  // the stream that table_ was last told of; table_ keeps it alive
  bool launched_ = false;
  std::shared_ptr<Stream> last_;  // that launched it last; null: the device's own
};

/// While it exists, the calling thread may call functions of CUDA that are forbidden while it
/// captures, such as cudaMalloc. They must not depend on captured work.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(bool capturing);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  bool changed_ = false;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace braid::cuda
