// Gradients in buckets: on asynchronous devices each bucket's sum is a separate op, which does not
// wait for the rest of backward.
#include <braid/core/backend.hpp>

#include "group.hpp"
#include "primitives/broadcast.hpp"

namespace braid::test::on_device {

namespace {

struct Deep : nn::Module {
  std::vector<nn::Linear> layers;
  Deep() {
    for (int i = 0; i < 4; ++i) layers.emplace_back(6, 6);
  }
  Tensor operator()(Tensor x) const {
    for (const nn::Linear& layer : layers) x = tanh(layer(x));
    return x;
  }
  BRAID_FIELDS(layers)
};

/// Collects the nodes below a tensor that a broadcast recorded.
void collect(const Ref<Node>& node, std::set<Node*>& seen, std::set<Node*>& broadcasts) {
  if (!node || !seen.insert(node.get()).second) return;
  if (std::string_view(node->name()) == "broadcast") broadcasts.insert(node.get());
  for (const Edge& e : node->edges()) collect(e.node, seen, broadcasts);
}
std::set<Node*> broadcasts_below(const Tensor& t) {
  std::set<Node*> seen, broadcasts;
  collect(t.id()->grad_fn, seen, broadcasts);
  return broadcasts;
}

bool on_host_memory() { return device_context(device(0)).host_memory; }

}  // namespace

TEST_CASE("buckets: gradients are added in them, with the same bits for every size", "[buckets]") {
  const Deep start = home(Deep());
  const Tensor x = random_tensor({9, 6}, DType::float32, device(0), 2);
  for (int n = 2; n <= up_to(4); ++n) {
    std::vector<Tensor> first;
    // Four layers of 144 and 24 bytes: all in one bucket, one bucket per layer (each tensor begins
    // at a line of 64 bytes), or one bucket per tensor.
    for (const auto& [bytes, buckets] :
         {std::pair{parallel::kBucketBytes, 1}, {std::size_t{220}, 4}, {std::size_t{1}, 8}}) {
      const DataParallel model(clone(start), group(n), DataParallelOptions{.bucket_bytes = bytes});
      optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        const Tensor y = model(x), loss = (y * y).sum();
        const std::set<Node*> broadcasts = broadcasts_below(loss);
        CHECK(static_cast<int>(broadcasts.size()) == (on_host_memory() ? 1 : buckets));
        for (const Node* const node : broadcasts) CHECK(node->early() == !on_host_memory());
        loss.backward();
        optimizer.step();
      }
      if (first.empty()) first = parameters(model);
      check_same(parameters(model), first);
    }
  }
}

TEST_CASE("buckets: sums lie in one flat buffer, zeros for what no replica has used", "[buckets]") {
  // on the CPU each sum is added in place
  if (on_host_memory() || device_count() < 2) return;
  const DataParallel model(home(Deep()), group(2));
  model(random_tensor({8, 6}, DType::float32, device(0), 2)).sum().backward();
  const auto at = [&](std::size_t k) {
    return static_cast<const char*>(parameters(model)[k].grad().id()->data());
  };
  // 144 and 24 bytes, in lines of 64
  for (std::size_t k = 0; k + 1 < 8; ++k) CHECK(at(k + 1) - at(k) == (k % 2 ? 64 : 192));
  const std::uint64_t version = parameters(model)[1].grad().version();
  parameters(model)[0].grad().add_(1.0);
  CHECK(parameters(model)[1].grad().version() == version);  // has a separate version
  std::vector<Tensor> parts(6);                             // three gradients, [rank][k]
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

TEST_CASE("buckets: weights that are not leaves are reduced in order", "[buckets]") {
  const int n = up_to(2);
  const Tensor x = random_tensor({6, 6}, DType::float32, device(0), 4),
               scale = tensor(2.0, {.device = device(0)}).requires_grad_();
  struct Product : nn::Module {
    Tensor weight;
    Tensor operator()(const Tensor& in) const { return matmul(in, weight); }
    BRAID_FIELDS(weight)
  };
  Product product;
  product.weight = random_tensor({6, 6}, DType::float32, device(0), 5) * scale;
  const Tensor want = grad(square(product(x)).sum(), {scale}, true)[0];
  const Tensor loss = square(data_parallel(product, x, group(n))).sum();
  const std::set<Node*> broadcasts = broadcasts_below(loss);
  CHECK(broadcasts.size() == (n > 1 ? 1 : 0));  // one device calls the module itself
  for (const Node* const node : broadcasts) CHECK_FALSE(node->early());
  CHECK_CLOSE(grad(loss, {scale})[0], want, (Tolerance{1e-4, 1e-4}));
}

}  // namespace braid::test::on_device
