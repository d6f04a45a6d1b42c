// The Communicator that uses NCCL.
#include <algorithm>
#include <chrono>
#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/internal/native_device.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/tensor.hpp>
#include <braid/parallel/communicator.hpp>
#include <braid/parallel/devices.hpp>

#include "communicator/nccl/group.hpp"

namespace braid::parallel {
namespace {

using nccl::Call;

std::vector<Device> checked(std::vector<Device> devices, double timeout) {
  constexpr const char* kMake = "make_nccl_communicator";
  if (devices.empty()) throw ArgumentError(str(kMake, ": expected at least one device, got none"));
  if (!(timeout > 0))
    throw ArgumentError(str(kMake, ": timeout: expected more than 0 s, got ", timeout));
  check_devices(kMake, devices);
  for (const Device device : devices)
    if (native_device(device) == nullptr)
      throw DeviceError(str(kMake, ": expected CUDA devices, got ", device));
  return devices;
}

/// Limits the timeout to a value that a clock can represent.
std::chrono::milliseconds milliseconds_of(double seconds) {
  constexpr double kMost = 1e9;
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(std::ceil(std::min(seconds, kMost) * 1000)));
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::vector<Device> group, double timeout)
      : Communicator(checked(group, timeout), static_cast<int>(group.size())),
        group_(std::move(group), milliseconds_of(timeout)) {}
  void wait() override { group_.wait(); }
  void check() override { group_.check(); }
  void abort() noexcept override { group_.abort(); }

 private:
  using Views = std::span<const BufferView>;

  /// Makes one call for every rank of every item that has elements; recv(i) and count(i) are those
  /// of view i.
  template <class Recv, class Count>
  void run(const char* op, Call::Kind kind, Views send, const Recv& recv, const Count& count) {
    std::vector<Call> calls;
    for (std::size_t i = 0; i < send.size(); ++i)
      if (count(i) > 0)
        calls.push_back({kind, i % devices().size(), send[i].data, recv(i),
                         static_cast<std::size_t>(count(i)), nccl::type_of(send[i].dtype)});
    if (!calls.empty()) group_.run(op, std::move(calls));
  }

  void do_broadcast(Views buffers) override {
    run(
        "broadcast", Call::Kind::broadcast, buffers, [&](std::size_t i) { return buffers[i].data; },
        [&](std::size_t i) { return buffers[i].count; });
  }
  void do_reduce(Views buffers, Views results) override {
    const std::size_t ranks = devices().size();
    std::vector<BufferView> all(buffers.begin(), buffers.end());
    std::vector<Tensor> none;  // ranks without data get zeros
    for (std::size_t i = 0; i < all.size(); ++i) {
      const BufferView& result = results[i / ranks];
      if (all[i].data != nullptr || result.count == 0) continue;
      none.push_back(
          zeros({result.count}, {.device = devices()[i % ranks], .dtype = result.dtype}));
      all[i] = {none.back().id()->data(), result.count, result.dtype, none.back().device()};
    }
    run(
        "reduce", Call::Kind::reduce, all,
        [&](std::size_t i) { return i % ranks == 0 ? results[i / ranks].data : nullptr; },
        [&](std::size_t i) { return results[i / ranks].count; });
  }
  void do_all_reduce(Views buffers) override {
    run(
        "all_reduce", Call::Kind::all_reduce, buffers,
        [&](std::size_t i) { return buffers[i].data; },
        [&](std::size_t i) { return buffers[i].count; });
  }
  void do_all_gather(Views buffers, Views results) override {
    run(
        "all_gather", Call::Kind::all_gather, buffers,
        [&](std::size_t i) { return results[i].data; },
        [&](std::size_t i) { return buffers[i].count; });
  }
  void do_reduce_scatter(Views buffers, Views results) override {
    run(
        "reduce_scatter", Call::Kind::reduce_scatter, buffers,
        [&](std::size_t i) { return results[i].data; },
        [&](std::size_t i) { return results[i].count; });
  }

  /// NCCL has no such function in all versions: each rank sends a part to every rank, in one group.
  void do_all_to_all(Views buffers, Views results) override {
    const std::size_t ranks = devices().size();
    std::vector<Call> calls;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::size_t count = static_cast<std::size_t>(buffers[i].count) / ranks,
                        bytes = count * size_of(buffers[i].dtype);
      for (std::size_t peer = 0; count > 0 && peer < ranks; ++peer) {
        const Call call{Call::Kind::send,
                        i % ranks,
                        static_cast<const char*>(buffers[i].data) + peer * bytes,
                        static_cast<char*>(results[i].data) + peer * bytes,
                        count,
                        nccl::type_of(buffers[i].dtype),
                        static_cast<int>(peer)};
        calls.push_back(call);
        calls.push_back(call);
        calls.back().kind = Call::Kind::recv;
      }
    }
    if (!calls.empty()) group_.run("all_to_all", std::move(calls));
  }

  nccl::Group group_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(std::vector<Device> devices, double timeout) {
  return std::make_unique<NcclCommunicator>(std::move(devices), timeout);
}

}  // namespace braid::parallel
