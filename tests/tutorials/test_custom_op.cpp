// The custom op of the tutorial: numbers, layouts, gradients, streams. On the best device: a CPU
// device, an emulated GPU, or a GPU.
#include <braid/braid.hpp>
#include <braid/kernels/cuda_native.hpp>

#include "custom_op/softsign.hpp"
#include "support/child.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"

using namespace braid;
using namespace braid::test;

namespace {

Tensor numbers(const Shape& shape, DType dtype) {
  return (randn(shape, {.dtype = dtype, .seed = 5}) * 2).to(best_device());
}

}  // namespace

TEST_CASE("custom op: values for every size that breaks a block", "[custom_op]") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (const std::int64_t n : {0, 1, 31, 255, 256, 257, 1000, 70'001}) {
      INFO(dtype << ", " << n << " elements");
      const Tensor x = numbers({n}, dtype);
      Array expected = array_of(x);
      for (double& v : expected.data) v = v / (1 + std::fabs(v));
      CHECK_CLOSE(mine::softsign(x), expected,
                  (Tolerance{0, dtype == DType::float32 ? 1.2e-7 : 2.3e-16}));
    }
}

TEST_CASE("custom op: layouts, and what is refused", "[custom_op]") {
  const Tensor x = numbers({12, 10}, DType::float64);
  const Tensor y = mine::softsign(x);
  CHECK(equal(mine::softsign(x.t()), y.t()));
  CHECK(equal(mine::softsign(x.slice(0, 1, 12, 2)), y.slice(0, 1, 12, 2)));
  CHECK(equal(mine::softsign(x[3].expand({4, 10})), y[3].expand({4, 10})));
  CHECK_THROWS_TEXT(DTypeError, "softsign: expected float32 or float64, got int64",
                    mine::softsign(tensor({1, 2}).to(best_device())));
}

TEST_CASE("custom op: gradients, and gradients of gradients", "[custom_op][gradcheck]") {
  CHECK_GRAD(
      softsign,
      tensor({-2.5, -0.4, 0.3, 1.0, 4.0}).to(best_device(), DType::float64).requires_grad_());
  CHECK_GRAD([](const Tensor& x) { return mine::softsign(x.t()) * 3.0; },
             tensor({{-2.5, -0.4, 0.3}, {1.5, 2.0, -4.0}})
                 .to(best_device(), DType::float64)
                 .requires_grad_());
}

TEST_CASE("custom op: on every device, on streams of a program's own", "[custom_op][streams]") {
  for (const Device device : devices()) {
    INFO(device);
    const Tensor x = full({3000}, -4.0, {.device = device}).requires_grad_();
    const std::shared_ptr<Stream> side = make_stream(device);
    side->wait_for(current_stream(device));
    const StreamGuard guard(side);
    for (int round = 0; round < 3; ++round) {  // memory is returned to the stream and reused
      const Tensor y = mine::softsign(x);
      CHECK(y.device() == device);
      CHECK(std::fabs(y.sum().item<double>() + 3000 * 0.8) < 1e-2);
      y.sum().backward();
      CHECK(std::fabs(x.grad()[7].item<double>() - 0.04) < 1e-6);
      x.set_grad({});
    }
    side->synchronize();
  }
}

TEST_CASE("custom op: native streams and pointers are of CUDA devices", "[custom_op][errors]") {
  CHECK_THROWS_TEXT(DeviceError, "my_op: expected a stream of a CUDA device, got one of cpu:0",
                    cuda::NativeStream("my_op", current_stream(Device())));
  CHECK_THROWS_TEXT(DeviceError, "pointer: expected a tensor on a CUDA device, got cpu:0",
                    cuda::pointer<float>(ones({2})));
  const std::vector<Device> gpus = devices(DeviceType::cuda);
  if (gpus.empty()) return;
  const Tensor x = ones({4}, {.device = gpus.back()});
  CHECK_THROWS_TEXT(DTypeError, "pointer: expected float64, got float32", cuda::pointer<double>(x));
  CHECK(cuda::pointer<float>(x.slice(0, 1, 4)) == cuda::pointer<float>(x) + 1);
  const cuda::NativeStream native("my_op", current_stream(gpus.back()));
  CHECK(native.get() == current_stream(gpus.back()).native());
  CHECK_NOTHROW(native.check(0));
  CHECK_THROWS_TEXT(CudaError,
                    str("my_op: expected success on ", gpus.back(), ", got cudaErrorInvalidValue"),
                    native.check(1));
  CHECK_THROWS_TEXT(OutOfMemoryError, "my_op", native.check(2));
}

#if BRAID_HAVE_KERNELS

TEST_CASE("child: a kernel that goes one element too far", "[.child][too_far]") {
  const Device device = devices(DeviceType::cuda).at(0);
  const Tensor x = ones({64}, {.device = device}), y = empty_like(x),
               neighbour = ones({64}, {.device = device});
  {
    const cuda::NativeStream native("too_far", current_stream(device));
    native.check(
        launch_softsign(cuda::pointer<const float>(x), cuda::pointer<float>(y), 65, native.get()));
  }
  CHECK_THROWS_TEXT(DeviceLostError, "one of the last * launches on cuda:0: *too_far",
                    synchronize(device));
  CHECK_THROWS_TEXT(DeviceLostError, "softsign.cu:", synchronize(device));
}

TEST_CASE("custom op: under the emulation its kernels are checked, to the end of each block",
          "[custom_op][process]") {
  if (!cuda::is_emulated()) return;
  for (const char* cache : {"1", "0"})
    CHECK_CHILD(std::string("BRAID_DEVICE= BRAID_CUDA_CACHE=") + cache, "[.child][too_far]");
}

#endif
