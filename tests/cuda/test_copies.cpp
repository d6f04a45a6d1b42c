// Copies between the host and devices, and between devices.

#include <algorithm>

#include "cuda/runtime/make_backend.hpp"
#include "cuda/runtime/staging.hpp"
#include "cuda_support.hpp"

using namespace braid;
using namespace braid::test;

namespace {

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> v(bytes);
  for (std::size_t i = 0; i < bytes; ++i) v[i] = static_cast<unsigned char>((i * 31 + seed) >> 3);
  return v;
}

}  // namespace

TEST_CASE("copies: to the device and back, around the size of a piece and of the ring",
          "[copies]") {
  NEEDS_DEVICES(1);
  constexpr std::size_t kPiece = cuda::PinnedRing::kPieceBytes,
                        kRing = kPiece * cuda::PinnedRing::kPieces;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{3}, kPiece - 1, kPiece, kPiece + 1,
                                  kRing - 1, kRing, kRing + 1, 2 * kRing + 12345}) {
    INFO(bytes << " bytes");
    std::vector<unsigned char> from = pattern(bytes, static_cast<unsigned>(bytes));
    const std::vector<unsigned char> expected = from;
    const Held block(0, bytes);
    copy_in(0, block.data(), from.data(), bytes);
    // the source was read before the call returned
    std::fill(from.begin(), from.end(), static_cast<unsigned char>(0xee));
    std::vector<unsigned char> seen(bytes);
    copy_out(0, seen.data(), block.data(), bytes);
    CHECK(seen == expected);
  }
}

TEST_CASE("copies: a ring of pinned pieces goes when the copies from it are done", "[copies]") {
  NEEDS_DEVICES(1);
  const std::vector<unsigned char> from = pattern(3 * cuda::PinnedRing::kPieceBytes, 5);
  const Held block(0, from.size());
  synchronize(cuda_device(0));  // the block was allocated on another stream
  cuda::Gpu gpu(0);
  cuda::CudaStream stream(gpu, cuda_device(0));
  {
    cuda::PinnedRing ring(gpu, cuda_device(0));
    ring.to_device(block.data(), from.data(), from.size(), stream);
  }
  stream.synchronize();
  std::vector<unsigned char> seen(from.size());
  copy_out(0, seen.data(), block.data(), seen.size());
  CHECK(seen == from);
}

TEST_CASE("copies: between GPUs through more pinned pieces than either has", "[copies]") {
  NEEDS_DEVICES(2);
  if (cuda::gpu_count() < 2) {
    WARN("SKIP(one GPU: its logical devices copy within it)");
    return;
  }
  const std::vector<unsigned char> bytes =
      pattern(2 * cuda::PinnedRing::kPieceBytes * cuda::PinnedRing::kPieces + 12345, 7);
  const Held source(0, bytes.size()), target(1, bytes.size());
  copy_in(0, source.data(), bytes.data(), bytes.size());
  cuda::Gpu sender(0), receiver(1);
  cuda::CudaStream from(sender, cuda_device(0)), to(receiver, cuda_device(1));
  for (cuda::Gpu* const owner : {&sender, &receiver}) {
    INFO("GPU " << owner->ordinal());
    synchronize(cuda_device(0));
    synchronize(cuda_device(1));
    {
      cuda::PinnedRing ring(*owner, cuda_device(owner->ordinal()));
      ring.between(target.data(), to, source.data(), from, bytes.size());
    }
    from.synchronize();
    to.synchronize();
    std::vector<unsigned char> seen(bytes.size());
    copy_out(1, seen.data(), target.data(), seen.size());
    CHECK(seen == bytes);
  }
}

TEST_CASE("copies: many small ones in flight, copy_, and from_blob of a device", "[copies]") {
  NEEDS_DEVICES(1);
  std::vector<Tensor> moved;
  for (int i = 0; i < 100; ++i) moved.push_back(full({7}, i + 0.0).to(cuda_device(0)));
  for (int i = 0; i < 100; ++i)
    CHECK(moved[static_cast<std::size_t>(i)].to_vector<double>() == std::vector<double>(7, i));
  const Tensor here = zeros({2, 3}), there = zeros({2, 3}, {.device = cuda_device(0)});
  there.copy_(ones({3}));
  here.copy_(there * 5);
  CHECK(here.to_vector<double>() == std::vector<double>(6, 5));
  const std::vector<float> numbers = {1, 2, 3, 4};
  auto block = std::make_shared<Held>(0, 16);
  copy_in(0, block->data(), numbers.data(), 16);
  Tensor x = from_blob(block->data(), {2, 2}, DType::float32, [block] {}, cuda_device(0));
  block.reset();
  CHECK(x.sum().item<double>() == 10);
  CHECK(x.to_vector<float>() == numbers);
}

TEST_CASE("copies: all devices, all ways, converting", "[copies]") {
  NEEDS_DEVICES(1);
  std::vector<Device> all = devices(DeviceType::cuda);
  all.emplace_back();
  const Tensor host = arange(60, {.dtype = DType::int64}).reshape({3, 4, 5});
  for (const Device a : all)
    for (const Device b : all) {
      INFO(a << " to " << b);
      const Tensor x = host.to(a).transpose(0, 2);
      const Tensor y = x.to(b, DType::float64);
      CHECK(y.device() == b);
      CHECK(y.shape() == Shape{5, 4, 3});
      CHECK(y.to_vector<double>() == host.transpose(0, 2).to_vector<double>());
      CHECK(zeros({0, 3}).to(a).to(b).shape() == Shape{0, 3});
    }
}
