#include "cuda/runtime/cuda_backend.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <braid/core/error.hpp>

#include "cuda/linked_libraries.hpp"
#include "cuda/runtime/errors.hpp"
#include "cuda/runtime/graph.hpp"
#include "cuda/runtime/peer.hpp"
#include "cuda/table.hpp"
#include "simt/portable.hpp"

namespace braid::cuda {
namespace {

/// A stream that a program created. Memory freed on it outlives it.
class SideStream final : public CudaStream {
 public:
  SideStream(Gpu& gpu, Device device, std::uint32_t number, StreamAllocator& allocator,
             TicketCounters& tickets, CudaStream& successor, bool private_memory = false) noexcept
      : CudaStream(gpu, device, number, private_memory),
        allocator_(allocator),
        tickets_(tickets),
        successor_(successor) {}
  ~SideStream() override {
    tickets_.retire(*this, successor_);
    allocator_.retire(*this, successor_);
  }

 private:
  StreamAllocator& allocator_;
  TicketCounters& tickets_;
  CudaStream& successor_;
};

int number_of(const char* variable, int least, int most, int otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < least || value > most)
    throw DeviceError(str(variable, ": expected a number from ", least, " to ", most, ", got '",
                          view.substr(0, 64), "'"));
  return value;
}

}  // namespace

int gpu_count(std::string* reason) noexcept {
  int count = 0;  // some errors leave it unchanged
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    count = 0;
  }
  if (reason != nullptr && count <= 0) {
    try {
      *reason = error == cudaSuccess ? std::string("the driver lists no CUDA device")
                                     : str("cudaGetDeviceCount: ", cudaGetErrorName(error), " (",
                                           cudaGetErrorString(error), ")");
      if (const std::string wrong = simt::environment_error(); !wrong.empty()) *reason = wrong;
    } catch (...) {  // no host memory for the text
      reason->clear();
    }
  }
  return count < 0 ? 0 : count;
}

CudaDevice::CudaDevice(Gpu& gpu, int index, bool cache, PinnedMemory& pinned)
    : gpu_(gpu),
      device_(DeviceType::cuda, index),
      kernels_(kernel_table()),
      stream_(gpu, device_),
      uploads_(std::make_shared<CudaStream>(gpu, device_, CudaStream::kUploads)),
      allocator_(gpu, device_, cache, uploads_.get()),
      tickets_(gpu, device_, allocator_),
      pinned_(pinned),
      ring_(gpu, device_),
      downloads_(gpu, device_) {}

std::string CudaDevice::description() const {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, gpu_.ordinal()), "cudaGetDeviceProperties", gpu_,
        device_);
  return str(static_cast<const char*>(properties.name), ", sm_", properties.major, properties.minor,
             ", ", properties.totalGlobalMem >> 20, " MiB, GPU ", gpu_.ordinal());
}

Block CudaDevice::allocate(std::size_t bytes, Stream& stream) {
  return allocator_.allocate(bytes, static_cast<CudaStream&>(stream));
}

void CudaDevice::release(const Block& block, Stream& stream) noexcept {
  allocator_.release(block, static_cast<CudaStream&>(stream));
}

void CudaDevice::release_after(const Block& block, Stream& stream,
                               std::span<const std::shared_ptr<Stream>> users) noexcept {
  allocator_.release_after(block, static_cast<CudaStream&>(stream), users);
}

void CudaDevice::empty_cache() {
  allocator_.empty_cache();
  pinned_.empty_cache();
}

std::unique_ptr<Stream> CudaDevice::make_stream() {
  auto stream = std::make_unique<SideStream>(gpu_, device_,
                                             streams_.fetch_add(1, std::memory_order_relaxed) + 1,
                                             allocator_, tickets_, stream_);
  (void)stream->get();  // throws here if it cannot be created
  return stream;
}

std::shared_ptr<Stream> CudaDevice::make_private_stream() {
  auto stream = std::make_shared<SideStream>(gpu_, device_,
                                             streams_.fetch_add(1, std::memory_order_relaxed) + 1,
                                             allocator_, tickets_, stream_, true);
  (void)stream->get();
  return stream;
}

std::unique_ptr<detail::StepRecorder> CudaDevice::make_recorder() {
  return allocator_.caches() ? std::make_unique<CudaGraph>(*this) : nullptr;
}

std::unique_ptr<Event> CudaDevice::make_event() {
  return std::make_unique<CudaEvent>(gpu_, device_);
}

NativeDevice::Size CudaDevice::size() const {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, gpu_.ordinal()), "cudaGetDeviceProperties", gpu_,
        device_);
  return {properties.totalGlobalMem, properties.multiProcessorCount};
}

std::string CudaDevice::address() const {
  const auto value = [this](cudaDeviceAttr attribute) {
    int found = 0;
    check(cudaDeviceGetAttribute(&found, attribute, gpu_.ordinal()), "cudaDeviceGetAttribute", gpu_,
          device_);
    return static_cast<unsigned>(found);
  };
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", value(cudaDevAttrPciDomainId),
                      value(cudaDevAttrPciBusId), value(cudaDevAttrPciDeviceId));
  return text.data();
}

void CudaDevice::make_current() {
  require_working(gpu_, device_);
  check(cudaSetDevice(gpu_.ordinal()), "cudaSetDevice", gpu_, device_);
}

std::unique_ptr<Event> CudaDevice::make_timed_event() {
  return std::make_unique<CudaEvent>(gpu_, device_, true);
}

double CudaDevice::seconds_between(const Event& from, const Event& to) {
  const auto& first = static_cast<const CudaEvent&>(from);
  const auto& second = static_cast<const CudaEvent&>(to);
  first.await();
  second.await();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, first.native(), second.native()),
        "cudaEventElapsedTime", gpu_, device_);
  return static_cast<double>(milliseconds) * 1e-3;
}

int CudaDevice::real_gpu() const noexcept { return simt::real_gpu(gpu_.ordinal()); }

void CudaDevice::copy(const CopyDesc& copy, Stream& stream) {
  require_working(gpu_, device_);
  if (copy.bytes == 0 || (copy.to == copy.from && copy.to_device == copy.from_device)) return;
  auto& own = static_cast<CudaStream&>(stream);
  const bool to_cuda = copy.to_device.type() == DeviceType::cuda,
             from_cuda = copy.from_device.type() == DeviceType::cuda;
  if (!to_cuda && !from_cuda)
    throw DeviceError(str("copy: expected a CUDA device on one side, got ", copy.from_device,
                          " to ", copy.to_device));
  if (own.graph() != nullptr && !(to_cuda && from_cuda))
    throw CaptureError(str("copy: expected a captured step without copies between the host and ",
                           device_, ", got one from ", copy.from_device, " to ", copy.to_device));
  gpu_.note("copy", device_, own.number());
  if (!from_cuda) {
    if (!copy.non_blocking || !pinned_.copy_to_device(copy.to, copy.from, copy.bytes, own))
      ring_.to_device(copy.to, copy.from, copy.bytes, own);
  } else if (!to_cuda) downloads_.to_host(copy.to, copy.from, copy.bytes, own);
  else copy_between(copy, own);
}

void CudaDevice::copy_between(const CopyDesc& copy, CudaStream& stream) {
  const Device other_device = copy.from_device == device_ ? copy.to_device : copy.from_device;
  CudaStream& other =
      other_device == device_ ? stream : static_cast<CudaStream&>(current_stream(other_device));
  CudaStream& to = copy.to_device == device_ ? stream : other;
  CudaStream& from = copy.from_device == device_ ? stream : other;
  if (&to.gpu() != &from.gpu()) {
    auto& other_end = static_cast<CudaDevice&>(*device_context(other_device).backend);
    if (!peer_copies_work({stream, ring_}, {other, other_end.ring_}))
      return ring_.between(copy.to, to, copy.from, from, copy.bytes);
  }
  copy_direct(copy.to, to.gpu(), copy.from, from.gpu(), copy.bytes, stream, other);
}

CudaBackend::CudaBackend() {
  if (const std::string wrong = simt::environment_error(); !wrong.empty())
    throw ArgumentError(wrong);
  register_linked_libraries();
  const int per_gpu = number_of("BRAID_CUDA_DEVICES_PER_GPU", 1, 64, 1);
  const bool cache = number_of("BRAID_CUDA_CACHE", 0, 1, 1) == 1;
  const int gpus = gpu_count();
  for (int g = 0; g < gpus; ++g) {
    gpus_.push_back(std::make_unique<Gpu>(g));
    if (g == 0) pinned_ = std::make_unique<PinnedMemory>(*gpus_[0], Device(DeviceType::cuda, 0));
    for (int i = 0; i < per_gpu; ++i)
      devices_.push_back(std::make_unique<CudaDevice>(
          *gpus_.back(), static_cast<int>(devices_.size()), cache, *pinned_));
  }
}

std::unique_ptr<Backend> make_backend() { return std::make_unique<CudaBackend>(); }

bool emulated() noexcept { return simt::kEmulated; }

}  // namespace braid::cuda
