// Tests of the engine on CUDA devices: values copied to the host, printing, gradients across
// devices, random numbers, batches that are moved to a device.
#include <sstream>

#include "cuda_support.hpp"
#include "support/views.hpp"

using namespace braid;
using namespace braid::test;

namespace {

struct Rows {
  Tensor rows = arange(40, {.dtype = DType::float32}).reshape({10, 4});
  std::int64_t size() const { return 10; }
  Tensor get(std::int64_t index) const { return rows[index]; }
};

}  // namespace

TEST_CASE("engine: numbers come to the host", "[engine]") {
  NEEDS_DEVICES(1);
  const Tensor x = arange(6, {.device = cuda_device(0), .dtype = DType::float32}).reshape({2, 3});
  CHECK(x[1][2].item<double>() == 5);
  CHECK(x.transpose(0, 1).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 3, 1, 4, 2, 5});
  CHECK(gt(x, 2).to_vector<bool>() == std::vector<bool>{false, false, false, true, true, true});
  CHECK(equal(x, x.clone()));
  CHECK(allclose(x, x + 1e-9));
  for (const int workers : {0, 2}) {  // batches of a loader are moved to the device
    double total = 0;
    for (Tensor batch : data::DataLoader(Rows(), {.batch_size = 3, .workers = workers}))
      total += batch.to(cuda_device(0)).sum().item<double>();
    CHECK(total == 780);
  }
}

TEST_CASE("engine: printing names the device and copies what it shows", "[engine]") {
  NEEDS_DEVICES(1);
  std::ostringstream text;
  text << ones({2, 3}, {.device = cuda_device(0)});
  CHECK(text.str() == "tensor([[1., 1., 1.],\n        [1., 1., 1.]], device='cuda:0')");
  std::ostringstream large, host;
  const Tensor numbers = arange(3000, {.dtype = DType::float32}).reshape({50, 60});
  large << numbers.to(cuda_device(0));
  host << numbers;
  CHECK(large.str() == host.str().substr(0, host.str().size() - 1) + ", device='cuda:0')");
}

TEST_CASE("engine: the same random bits as on the CPU", "[engine]") {
  NEEDS_DEVICES(1);
  for (const Device d : devices(DeviceType::cuda)) {
    CHECK(equal(randn({1000}, {.device = d, .seed = 7}).to("cpu"), randn({1000}, {.seed = 7})));
    CHECK(equal(rand({1001}, {.device = d, .seed = 8}).to("cpu"), rand({1001}, {.seed = 8})));
    CHECK(equal(randint(-5, 1000, {777}, {.device = d, .seed = 9}).to("cpu"),
                randint(-5, 1000, {777}, {.seed = 9})));
  }
}

TEST_CASE("engine: a gradient that goes over devices comes back to each weight's own", "[engine]") {
  NEEDS_DEVICES(2);
  const auto run = [](Device first, Device second) {
    const Tensor a = (arange(12, {.device = first, .dtype = DType::float32}).reshape({3, 4}) * 0.1)
                         .requires_grad_();
    const Tensor b = (arange(8, {.device = second, .dtype = DType::float32}).reshape({4, 2}) * 0.2)
                         .requires_grad_();
    const Tensor c = ones({3, 4}, {.device = Device(), .requires_grad = true});
    const Tensor left = tanh(a * c.to(first)).to(second);
    const Tensor y = relu(matmul(left, b) + matmul(a.to(second), b)).to(first);
    (y.sum() + (a * a).sum()).backward();
    CHECK(a.grad().device() == first);
    CHECK(b.grad().device() == second);
    CHECK(c.grad().device() == Device());
    return std::vector<Tensor>{a.grad().to("cpu"), b.grad().to("cpu"), c.grad()};
  };
  const std::vector<Tensor> expected = run(Device(), Device());
  for (int round = 0; round < 5; ++round) {
    const std::vector<Tensor> got = run(cuda_device(0), cuda_device(1));
    for (std::size_t i = 0; i < 3; ++i) CHECK(allclose(got[i], expected[i], 1e-5, 1e-6));
  }
}

TEST_CASE("engine: the communicator over CUDA devices and the CPU", "[engine]") {
  NEEDS_DEVICES(2);
  for (const std::vector<Device>& group : {std::vector<Device>{cuda_device(0), cuda_device(1)},
                                           {Device(), cuda_device(0), cuda_device(1)},
                                           {cuda_device(1), Device(), cuda_device(0)}}) {
    const std::unique_ptr<parallel::Communicator> all = parallel::make_local_communicator(group);
    std::vector<Tensor> parts;
    for (std::size_t i = 0; i < group.size(); ++i)
      parts.push_back(full({1000}, static_cast<double>(i + 1), {.device = group[i]}));
    const Tensor sum = zeros({1000}, {.device = group[0]});
    all->reduce(views_of(parts), views_of({sum}));
    CHECK(sum.to_vector<double>() == std::vector<double>(1000, group.size() == 2 ? 3 : 6));
    all->broadcast(views_of(parts));
    for (const Tensor& part : parts)
      CHECK(part.to_vector<double>() == std::vector<double>(1000, 1));
  }
}
