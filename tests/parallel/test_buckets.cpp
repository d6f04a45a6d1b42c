// Gradients in buckets: on devices that work beside the host each bucket's sum is an op of its own,
// which does not wait for the rest of backward.
#include <braid/parallel/data_parallel.hpp>

#include <set>

#include <braid/core/backend.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/nn/linear.hpp>
#include <braid/nn/optim.hpp>

#include "group.hpp"
#include "primitives/broadcast.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;
using parallel::DataParallelOptions;

namespace {

struct Deep : nn::Module {
  std::vector<nn::Linear> layers;
  explicit Deep(int depth = 4) {
    for (int i = 0; i < depth; ++i) layers.emplace_back(6, 6);
  }
  Tensor operator()(Tensor x) const {
    for (const nn::Linear& layer : layers) x = tanh(layer(x));
    return x;
  }
  BRAID_FIELDS(layers)
};

/// The nodes below a tensor that a broadcast recorded.
void collect(const Ref<Node>& node, std::set<Node*>& seen, std::set<Node*>& broadcasts) {
  if (!node || !seen.insert(node.get()).second) return;
  if (std::string_view(node->name()) == "broadcast") broadcasts.insert(node.get());
  for (const Edge& e : node->edges()) collect(e.node, seen, broadcasts);
}

}  // namespace

TEST_CASE("4.5, 7.2: gradients are added in buckets, with the same bits for every size of them",
          "[parallel][buckets]") {
  const Deep start = home(Deep());
  const Tensor x = random_tensor({9, 6}, DType::float32, device(0), 2);
  for (int n = 2; n <= std::min(4, device_count()); ++n) {
    std::vector<Tensor> first;
    for (const std::size_t bytes : {parallel::kBucketBytes, std::size_t{220}, std::size_t{1}}) {
      const DataParallel model(clone(start), group(n), DataParallelOptions{.bucket_bytes = bytes});
      optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        const Tensor y = model(x), loss = (y * y).sum();
        std::set<Node*> seen, broadcasts;
        collect(loss.id()->grad_fn, seen, broadcasts);
        // Four layers of 144 and 24 bytes: all in one, one for each layer (a line of 64 bytes
        // begins each tensor), or one for each tensor.
        const std::size_t wanted =
            device_context(device(0)).host_memory || bytes == parallel::kBucketBytes ? 1
            : bytes == 220                                                           ? 4
                                                                                     : 8;
        CHECK(broadcasts.size() == wanted);
        for (const Node* const node : broadcasts)
          CHECK(node->early() == !device_context(device(0)).host_memory);
        loss.backward();
        optimizer.step();
      }
      const std::vector<Tensor> state = copies_of(parameters(model));
      if (first.empty()) first = state;
      for (std::size_t k = 0; k < state.size(); ++k) CHECK_SAME_BITS(state[k], first[k]);
    }
  }
}

TEST_CASE("7.2: the sums of a bucket lie in one flat buffer, zeros for what a replica has not used",
          "[parallel][buckets]") {
  // on the CPU each sum is added where it lies
  if (device_context(device(0)).host_memory || device_count() < 2) return;
  const Deep start = home(Deep());
  const DataParallel model(clone(start), group(2));
  model(random_tensor({8, 6}, DType::float32, device(0), 2)).sum().backward();
  const auto at = [&](std::size_t k) {
    return static_cast<const char*>(parameters(model)[k].grad().id()->data());
  };
  // 144 and 24 bytes, in lines of 64
  for (std::size_t k = 0; k + 1 < 8; ++k) CHECK(at(k + 1) - at(k) == (k % 2 ? 64 : 192));
  const std::uint64_t version = parameters(model)[1].grad().version();
  parameters(model)[0].grad().add_(1.0);
  CHECK(parameters(model)[1].grad().version() == version);  // of its own
  std::vector<Tensor> parts(6);                             // of three gradients, [rank][k]
  parts[0] = full({3}, 1.0, {.device = device(0)}),
  parts[3] = full({3}, 2.0, {.device = device(1)});
  parts[4] = full({2, 2}, 5.0, {.device = device(1)});
  const NoGrad guard;
  const std::vector<Tensor> sums = parallel::reduce_tensors(parts, group(2), false);
  CHECK(numbers(sums[0]) == std::vector<double>(3, 3.0));
  CHECK(numbers(sums[1]) == std::vector<double>(4, 5.0));
  CHECK(sums[1].device() == device(0));
  CHECK_FALSE(sums[2].defined());
}

TEST_CASE("7.4: a gradient of the gradient goes through every bucket", "[parallel][buckets]") {
  const Deep plain = home(Deep(2));
  const Tensor x = random_tensor({5, 6}, DType::float32, device(0), 3).requires_grad_();
  const auto penalty = [&](const auto& net, const Tensor& weight) {
    const Tensor y = net(x);
    const std::vector<Tensor> roots{(y * y).sum()}, leaves{weight};
    const Tensor g = grad(roots, leaves, {}, true, true)[0];
    const std::vector<Tensor> second{(g * g).sum()};
    return grad(second, leaves, {}, false, false)[0];
  };
  const Tensor want = penalty(plain, plain.layers[0].weight);
  for (int n = 1; n <= std::min(3, device_count()); ++n) {
    const DataParallel model(clone(plain), group(n), DataParallelOptions{.bucket_bytes = 64});
    CHECK(allclose(penalty(model, model.module.layers[0].weight), want, 1e-4, 1e-5));
  }
}

TEST_CASE("7.1: weights that are not leaves are reduced in order", "[parallel][buckets]") {
  const int n = std::min(2, device_count());
  const Tensor x = random_tensor({6, 6}, DType::float32, device(0), 4),
               scale = tensor(2.0, {.device = device(0)}).requires_grad_();
  const Tensor weight = random_tensor({6, 6}, DType::float32, device(0), 5) * scale;
  const Tensor want = grad((matmul(x, weight) * matmul(x, weight)).sum(), {scale})[0];
  struct Product : nn::Module {
    Tensor weight;
    Tensor operator()(const Tensor& in) const { return matmul(in, weight); }
    BRAID_FIELDS(weight)
  };
  Product product;
  product.weight = random_tensor({6, 6}, DType::float32, device(0), 5) * scale;
  const Tensor y = parallel::data_parallel(product, x, group(n)), loss = (y * y).sum();
  std::set<Node*> seen, broadcasts;
  collect(loss.id()->grad_fn, seen, broadcasts);
  CHECK(broadcasts.size() == (n > 1 ? 1 : 0));  // one device calls the module itself
  for (const Node* const node : broadcasts) CHECK_FALSE(node->early());
  CHECK(allclose(grad(loss, {scale})[0], want, 1e-4, 1e-4));
}

}  // namespace braid::test::on_device
