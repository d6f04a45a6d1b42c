#include "cuda/runtime/graph.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <braid/core/error.hpp>

#include "cuda/cublas.hpp"
#include "cuda/record.hpp"
#include "cuda/runtime/cuda_backend.hpp"
#include "cuda/runtime/errors.hpp"

namespace braid::cuda {
namespace {

constexpr std::size_t kAlignment = 16;

std::shared_ptr<Stream> shared(Stream& stream) { return stream.weak_from_this().lock(); }

}  // namespace

RelaxedCapture::RelaxedCapture(bool capturing) {
  changed_ = capturing && cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess;
}
RelaxedCapture::~RelaxedCapture() {
  if (changed_) (void)cudaThreadExchangeStreamCaptureMode(&mode_);
}

CudaGraph::CudaGraph(CudaDevice& device) : device_(device), stream_(device.make_private_stream()) {}

CudaGraph::~CudaGraph() {
  if (functions_ != nullptr) cancel();
  Gpu& gpu = own().gpu();
  if (instance_ != nullptr && !gpu.lost()) settle(cudaGraphExecDestroy(instance_), gpu);
  // Its memory goes to the device's own stream once nothing uses it: after the last replay.
  if (last_ != nullptr) {
    try {
      device_.default_stream().wait_for(*last_);
    } catch (...) {  // the work is done, or the device is lost: see Stream::wait_for
    }
  }
}

bool CudaGraph::begin(detail::ReplayFunctions& functions) {
  // the cache may hold the memory that the recorded step needs
  device_.empty_cache();
  CudaStream& stream = own();
  const Device device = stream.device();
  table_ = Storage::allocate(kTableBytes, device);
  values_.clear();
  on_device_.clear();
  engine_ = gemm_engine();
  (void)reserve(sizeof(RandomShift));  // the first entry
  prepare_cublas(stream);
  const DeviceGuard guard(stream.gpu(), device);
  const cudaError_t begun = cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal);
  if (begun == cudaErrorNotSupported) {
    (void)cudaGetLastError();
    return false;
  }
  check(begun, "cudaStreamBeginCapture", stream.gpu(), device);
  stream.set_graph(this, &static_cast<CudaStream&>(current_stream(device)));
  functions_ = &functions;
  return true;
}

void CudaGraph::end() {
  CudaStream& stream = own();
  const Device device = stream.device();
  const DeviceGuard guard(stream.gpu(), device);
  functions_ = nullptr;
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph);
  stream.set_graph(nullptr, nullptr);
  if (ended == cudaErrorStreamCaptureInvalidated || ended == cudaErrorStreamCaptureUnjoined) {
    (void)cudaGetLastError();
    throw CaptureError(str("captured_step: expected a step whose work on ", device,
                           " can be recorded, got ", cudaGetErrorName(ended), " (",
                           cudaGetErrorString(ended), ")"));
  }
  check(ended, "cudaStreamEndCapture", stream.gpu(), device);
  const cudaError_t made = cudaGraphInstantiate(&instance_, graph, 0);
  settle(cudaGraphDestroy(graph), stream.gpu());
  check(made, "cudaGraphInstantiate", stream.gpu(), device);
}

void CudaGraph::cancel() noexcept {
  CudaStream& stream = own();
  functions_ = nullptr;
  cudaGraph_t graph = nullptr;
  if (!stream.gpu().lost()) {
    (void)settle(cudaStreamEndCapture(static_cast<cudaStream_t>(stream.native()), &graph),
                 stream.gpu());
    if (graph != nullptr) settle(cudaGraphDestroy(graph), stream.gpu());
  }
  stream.set_graph(nullptr, nullptr);
}

void CudaGraph::follow(Stream& stream) {
  Stream& before = last_ != nullptr ? *last_ : device_.default_stream();
  if (launched_ && &before != &stream) stream.wait_for(before);
}

void CudaGraph::launch(Stream& stream) {
  follow(stream);
  auto& on = static_cast<CudaStream&>(stream);
  const Device device = on.device();
  require_working(on.gpu(), device);
  if (&stream != told_) {  // table_ was allocated for the stream on which the step was recorded
    table_->record_stream(stream);
    told_ = &stream;
  }
  if (values_ != on_device_) {
    on_device_.clear();  // if the copy fails, its state is unknown
    device_.copy({table_->data(), device, values_.data(), Device(), values_.size()}, stream);
    on_device_ = values_;
  }
  const DeviceGuard guard(on.gpu(), device);
  on.gpu().note("captured step", device, on.number());
  check(cudaGraphLaunch(instance_, on.get()), "cudaGraphLaunch", on.gpu(), device);
  launched_ = true;
  if (&stream != last_.get()) last_ = shared(stream);
}

std::size_t CudaGraph::reserve(std::size_t bytes) {
  const std::size_t at = values_.size(), size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (at + size > kTableBytes)
    throw CaptureError(str("captured_step: expected at most ", kTableBytes,
                           " bytes of values that change between replays, got more"));
  values_.resize(at + size);
  return at;
}

void* CudaGraph::add_value(const void* first, std::size_t bytes,
                           std::function<void(void*)> update) {
  const std::size_t at = reserve(bytes);
  std::memcpy(values_.data() + at, first, bytes);
  functions_->push_back({[this, at, update = std::move(update)] { update(values_.data() + at); }});
  return static_cast<char*>(table_->data()) + at;
}

const RandomShift* CudaGraph::random_shift() const noexcept {
  return static_cast<const RandomShift*>(table_->data());
}
void CudaGraph::set_random_shift(const RandomShift& shift) noexcept {
  std::memcpy(values_.data(), &shift, sizeof shift);
}
const char* CudaGraph::changed_setting() const noexcept {
  return gemm_engine() == engine_ ? nullptr : "the engine of matrix products";
}

void* record_value(Stream& stream, const void* first, std::size_t bytes,
                   std::function<void(void*)> update) {
  CudaGraph* const graph = static_cast<CudaStream&>(stream).graph();
  return graph == nullptr ? nullptr : graph->add_value(first, bytes, std::move(update));
}

}  // namespace braid::cuda
