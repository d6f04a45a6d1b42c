// ReplicatedOptimizer, where every device keeps the weights and takes the same step, compared with
// the step on the first device.
#include "group.hpp"
#include "support/temporary.hpp"

namespace braid::test::on_device {

using parallel::ReplicateBytes;
using parallel::ReplicatedOptimizer;

namespace {

struct Norm : nn::Module {
  nn::Linear fc1{4, 6};
  nn::BatchNorm1d norm{6};
  nn::Linear fc2{6, 3}, unused{6, 3};
  Tensor operator()(const Tensor& x) const { return fc2(norm(fc1(x))); }
  BRAID_FIELDS(fc1, norm, fc2, unused)
};

struct Plain : nn::Module {
  nn::Linear fc1{4, 6}, fc2{6, 3}, unused{6, 3};
  Tensor operator()(const Tensor& x) const { return fc2(tanh(fc1(x))); }
  BRAID_FIELDS(fc1, fc2, unused)
};

optim::SGD sgd(const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1}); }
optim::SGD heavy(const std::vector<Tensor>& p) {
  return optim::SGD(p, {.lr = 0.1, .momentum = 0.5});
}
optim::AdamW adamw(const std::vector<Tensor>& p) { return optim::AdamW(p); }

int few() { return up_to(3); }
Tensor batch(std::uint64_t seed, std::int64_t rows = 13) {
  return random_tensor({rows, 4}, DType::float32, device(0), seed);
}
Tensor loss_of(const Tensor& y) { return (y * y).mean(); }

/// A model and its replicated optimizer.
template <class F = optim::SGD (*)(const std::vector<Tensor>&)> struct Replicated {
  DataParallel<Plain> model;
  ReplicatedOptimizer<std::invoke_result_t<F, const std::vector<Tensor>&>> optimizer;
  explicit Replicated(const Plain& start, F make, int n = few(),
                      std::size_t bytes = parallel::kBucketBytes)
      : model(clone(start), group(n), DataParallelOptions{.bucket_bytes = bytes}),
        optimizer(model, make) {}
  void backward(std::uint64_t seed) const { loss_of(model(batch(seed))).backward(); }
  void step(std::uint64_t seed) {
    optimizer.zero_grad();
    backward(seed);
    optimizer.step();
  }
};

/// The weights on every device, after those have been sent that other code has written.
template <class M> std::vector<std::vector<Tensor>> weights_of(const DataParallel<M>& model) {
  return model.state().replicate_parameters(tree::flatten(model.module))->parameters();
}
/// Checks that all devices have the same weights.
template <class M> void check_copies(const DataParallel<M>& model) {
  const auto copies = weights_of(model);
  for (const std::vector<Tensor>& rank : copies) check_same(rank, copies.front());
}

/// Checks that every device has the weights of another model, to the bit.
void check_like(const DataParallel<Plain>& model, const DataParallel<Plain>& other) {
  check_same(parameters(model), parameters(other));
  check_copies(model);
}

/// Some steps of both kinds end with the same bits everywhere. After the first forward no parameter
/// is sent.
template <class M, class F>
void check_like_first(const M& start, const F& make, std::int64_t rows, std::int64_t other_rows,
                      std::size_t buffers) {
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    const DataParallel first(clone(start), group(n));
    auto optimizer = make(parameters(first));
    const DataParallel model(clone(start), group(n));
    ReplicatedOptimizer replicated(model, make);
    for (std::uint64_t step = 0; step < 4; ++step) {
      const Tensor x = batch(step, step == 2 ? other_rows : rows);
      optimizer.zero_grad();
      replicated.zero_grad();
      const Tensor y = first(x), z = model(x);
      CHECK_SAME_BITS(z, y);
      loss_of(y).backward();
      loss_of(z).backward();
      optimizer.step();
      replicated.step();
      if (n == 1) continue;
      if (step > 0) CHECK(model.replicate_bytes().copied <= buffers * usize(n - 1));
      CHECK(model.replicate_bytes().cached > 0);
    }
    const StateDict want = state_dict(first), got = state_dict(model);
    REQUIRE(got.size() == want.size());
    for (const auto& [name, tensor] : want) CHECK_SAME_BITS(got.at(name), tensor);
    check_copies(model);
    const auto weights = weights_of(model);
    for (std::size_t rank = 1; rank < usize(n); ++rank)
      for (const Tensor& p : weights[rank]) CHECK_FALSE(p.grad().defined());
  }
}

}  // namespace

TEST_CASE("replicated optimizer: ends as steps on the first device, sends no weights",
          "[replicated_optimizer]") {
  const auto momentum = [](const std::vector<Tensor>& p) {
    return optim::SGD(p, {.lr = 0.1, .momentum = 0.9});
  };
  check_like_first(home(Plain{}), momentum, 13, 2, 0);  // 2: fewer rows than devices
  check_like_first(home(Plain{}), adamw, 13, 2, 0);
  // BatchNorm's buffers are those of replica 0, as always, so they are sent. At least two rows
  // each.
  check_like_first(home(Norm{}), sgd, 24, 48, 2 * 6 * sizeof(float) + sizeof(std::int64_t));
}

TEST_CASE("replicated optimizer: what is written to the model is sent again",
          "[replicated_optimizer]") {
  Replicated<> net(home(Plain{}), sgd);
  const auto check = [&](std::size_t written) {
    const Plain alone = clone(net.model.module);
    CHECK_CLOSE(net.model(batch(1)), alone(batch(1)), (Tolerance{1e-5, 1e-6}));
    if (few() > 1)
      CHECK(net.model.replicate_bytes().copied == written * sizeof(float) * usize(few() - 1));
    check_copies(net.model);  // sends what is missing
  };
  net.step(2);
  check(0);
  unrecorded([&] { net.model.module.fc1.weight.mul_(2); });
  check(24);
  load_state_dict(net.model, state_dict(home(Plain{})));
  check(24 + 6 + 18 + 3 + 18 + 3);
  // Written between the backward and the step: the step starts from the new value everywhere.
  net.optimizer.zero_grad();
  net.backward(3);
  unrecorded([&] { net.model.module.fc2.bias.add_(1); });
  net.optimizer.step();
  check_copies(net.model);
  net.step(2);
  check_copies(net.model);
}

TEST_CASE("replicated optimizer: clipping, several backwards, frozen parameters",
          "[replicated_optimizer]") {
  constexpr Tolerance close{1e-5, 1e-6};
  for (int n = 1; n <= up_to(4); ++n) {
    INFO(n << " devices");
    Plain start = home(Plain{});
    start.fc1.bias.requires_grad_(false);
    Plain plain = clone(start);
    Replicated<> net(start, heavy, n);
    optim::SGD optimizer = heavy(parameters(plain));
    optim::ExponentialSchedule schedule(optimizer, {.gamma = 0.5}),
        second_schedule(net.optimizer.main(), {.gamma = 0.5});
    for (std::uint64_t step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      net.optimizer.zero_grad();
      for (std::uint64_t part = 0; part < 2; ++part) {
        loss_of(plain(batch(10 * step + part))).backward();
        net.backward(10 * step + part);
      }
      net.optimizer.reduce();  // makes the sum visible
      const std::vector<Tensor> want = parameters(plain), got = parameters(net.model);
      for (std::size_t k = 0; k < want.size(); ++k) {
        CHECK(got[k].grad().defined() == want[k].grad().defined());
        if (want[k].grad().defined()) CHECK_CLOSE(got[k].grad(), want[k].grad(), close);
      }
      optim::clip_grad_norm_(want, 0.01);
      optim::clip_grad_norm_(got, 0.01);
      optimizer.step();
      net.optimizer.step();
      schedule.step();
      second_schedule.step();
      check_close(got, want, close);
      check_copies(net.model);
      CHECK_SAME_BITS(net.model.module.unused.weight, start.unused.weight);
    }
    // Training can continue from a saved state with another number of devices.
    Replicated<> next(net.model.module, heavy, n % up_to(4) + 1);
    next.optimizer.load_state(state_dict(net.optimizer.main()));
    next.optimizer.main().set_lr(net.optimizer.main().lr());
    net.step(77);
    next.step(77);
    check_close(parameters(next.model), parameters(net.model), close);
    check_copies(next.model);
  }
}

TEST_CASE("replicated optimizer: zero_grad of the model, or a tree, is for all",
          "[replicated_optimizer]") {
  const Plain start = home(Plain{});
  Replicated<> net(start, sgd), other(start, sgd);
  net.backward(1);  // discarded, as after a loss that is not a number
  zero_grad(net.model);
  net.backward(2);
  other.backward(2);
  net.optimizer.step();
  other.optimizer.step();
  check_like(net.model, other.model);
  struct Whole : nn::Module {
    DataParallel<Plain> body;
    nn::Linear head{3, 1};
    explicit Whole(const Plain& plain) : body(clone(plain), group(few())) {}
    BRAID_FIELDS(body, head)
  };
  Whole whole(start);
  const ReplicatedOptimizer optimizer(whole.body, sgd);
  std::vector<Whole> list;
  list.push_back(std::move(whole));
  loss_of(list[0].body(batch(1))).backward();
  const auto with_gradient = [&] {
    int count = 0;
    for (const std::vector<Tensor>& rank : optimizer.weights())
      for (const Tensor& p : rank) count += p.grad().defined();
    return count;
  };
  CHECK(with_gradient() == 4 * few());
  zero_grad(list);
  CHECK(with_gradient() == 0);
}

TEST_CASE("replicated optimizer: a weight written unseen ends no earlier graph",
          "[replicated_optimizer]") {
  const Plain start = home(Plain{});
  Replicated<> net(start, sgd), other(start, sgd);
  (void)net.model(batch(1));
  for (const Tensor& p : parameters(net.model)) p.storage()->expose();  // as data<T>() does
  for (Replicated<>* each : {&net, &other}) {
    const Tensor first = loss_of(each->model(batch(2))), second = loss_of(each->model(batch(3)));
    // sent at each call, because a change could not be detected
    if (few() > 1) CHECK((each->model.replicate_bytes().copied > 0) == (each == &net));
    first.backward();
    second.backward();
    each->optimizer.step();
  }
  check_like(net.model, other.model);
}

TEST_CASE("replicated optimizer: the gradients are summed in buckets", "[replicated_optimizer]") {
  const Plain start = home(Plain{});
  Replicated<> whole(start, sgd);
  whole.step(1);
  // the weights have 96, 24, 72 and 12 bytes
  for (const std::size_t bytes : {1u, 80u, 120u}) {
    INFO(bytes);
    Replicated<> net(start, sgd, few(), bytes);
    net.step(1);
    check_like(net.model, whole.model);
  }
}

TEST_CASE("replicated optimizer: replicate_bytes are the forward's, not the step's",
          "[replicated_optimizer]") {
  if (few() < 2) return;
  Replicated<> net(home(Plain{}), sgd);
  unrecorded([&] { net.model.module.fc2.bias.add_(1); });
  const Tensor loss = loss_of(net.model(batch(1)));
  const ReplicateBytes of_forward = net.model.replicate_bytes();
  CHECK(of_forward.copied == 3 * sizeof(float) * usize(few() - 1));
  loss.backward();
  net.optimizer.step();
  CHECK(net.model.replicate_bytes() == of_forward);
}

TEST_CASE("replicated optimizer: an error changes no parameter", "[replicated_optimizer][errors]") {
  if (few() < 2) return;
  const Plain start = home(Plain{});
  Replicated net(start, adamw), without(start, adamw);
  net.backward(1);
  without.backward(1);
  without.optimizer.step();
  const std::vector<Tensor> before = copies_of(parameters(net.model));
  // The last device runs out of memory for the gradients or for the optimizer's state.
  const Device last = device(few() - 1);
  std::uint64_t nth = 1;
  for (bool threw = true; threw; ++nth) {
    fail_allocation(last, nth);
    try {
      net.optimizer.step();
      threw = false;
    } catch (const OutOfMemoryError&) {}
    fail_allocation(last, 0);
    if (!threw) break;
    check_same(parameters(net.model), before);
    check_copies(net.model);
  }
  CHECK(nth > 1);
  // No gradient was counted twice.
  check_like(net.model, without.model);
  CHECK_FALSE(test::same_bits(parameters(net.model).front(), before.front()).empty());
}

TEST_CASE("replicated optimizer: without it the model sends its weights",
          "[replicated_optimizer]") {
  if (few() < 2) return;
  const DataParallel model(home(Plain{}), group(few()));
  {
    ReplicatedOptimizer optimizer(model, sgd);
    loss_of(model(batch(1))).backward();
    optimizer.step();
    loss_of(model(batch(1))).backward();  // these gradients end with the optimizer
  }
  const DataParallel other(clone(model.module), group(few()));
  for (const DataParallel<Plain>* each : {&model, &other}) {
    zero_grad(*each);
    loss_of((*each)(batch(2))).backward();
    CHECK(each->replicate_bytes().copied > 0);
  }
  check_same(gradients_of(parameters(model)), gradients_of(parameters(other)));
}

TEST_CASE("replicated optimizer: what cannot be is refused", "[replicated_optimizer][errors]") {
  const nn::Linear start = home(nn::Linear(2, 2));
  CHECK_THROWS_TEXT(ArgumentError,
                    "ReplicatedOptimizer: expected a DataParallel with a device at least, got none",
                    ReplicatedOptimizer(DataParallel(nn::Linear(2, 2), {}), sgd));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "ReplicatedOptimizer: expected a DataParallel, got a DeterministicDataParallel*",
      ReplicatedOptimizer(DeterministicDataParallel(clone(start), group(1)), sgd));
  if (device_count() < 2) return;
  DataParallel model(clone(start), group(2));
  to(model.module.bias, device(1));
  CHECK_THROWS_TEXT(DeviceError, "module must have its parameters and buffers on device *",
                    ReplicatedOptimizer(model, sgd));
  to(model.module.bias, device(0));
  ReplicatedOptimizer optimizer(model, sgd);
  (void)model(ones({2, 2}, {.device = device(0)}));
  to(model, DType::float64);
  CHECK_THROWS_TEXT(
      ArgumentError,
      "ReplicatedOptimizer: expected the model's parameters to be those that it had at first",
      model(ones({2, 2}, {.device = device(0), .dtype = DType::float64})));
}

TEST_CASE("replicated optimizer: a checkpoint of main() resumes with the same bits",
          "[replicated_optimizer]") {
  const auto check = [](const auto& make) {
    const TemporaryFolder folder;
    const Plain start = home(Plain{});
    Replicated whole(start, make), first(start, make), second(home(Plain{}), make);
    whole.optimizer.main().set_momentum(0, 0.3);
    first.optimizer.main().set_momentum(0, 0.3);
    for (std::uint64_t step = 0; step < 5; ++step) whole.step(step);
    for (std::uint64_t step = 0; step < 3; ++step) first.step(step);
    training::Checkpoint(folder.path(), first.model, first.optimizer.main()).save();
    second.step(9);  // a state and weights that the load replaces
    training::Checkpoint checkpoint(folder.path(), second.model, second.optimizer.main());
    REQUIRE(checkpoint.load_latest());
    for (std::uint64_t step = 3; step < 5; ++step) second.step(step);
    check_like(second.model, whole.model);
    for (const auto& each : second.optimizer.all()) {
      const StateDict want = state_dict(whole.optimizer.main()), got = state_dict(*each);
      REQUIRE(got.size() == want.size());
      for (const auto& [name, tensor] : want)
        CHECK_SAME_BITS(got.at(name).to(tensor.device()), tensor);
    }
  };
  check(heavy);
  check(adamw);
}

TEST_CASE("replicated optimizer: a step of main() alone is refused",
          "[replicated_optimizer][errors]") {
  if (device_count() < 2) return;
  DataParallel model(home(nn::Linear(2, 2)), group(2));
  ReplicatedOptimizer optimizer(
      model, [](const std::vector<Tensor>& p) { return optim::AdamW(p, {.lr = 0.1}); });
  const auto backward = [&] {
    optimizer.zero_grad();
    model(ones({2, 2}, {.device = device(0)})).sum().backward();
  };
  backward();
  optimizer.step();
  StateDict state;
  for (const auto& [name, t] : state_dict(optimizer.main())) state.set(name, t.clone());
  backward();
  optimizer.step();
  backward();
  optimizer.main().step();
  backward();
  const Tensor before = model.module.weight.detach().clone();
  CHECK_THROWS_TEXT(Error,
                    "ReplicatedOptimizer: expected optimizers that have taken the same steps, "
                    "got 3 of parameter 0 on * and 2 on *load_state makes them equal",
                    optimizer.step());
  CHECK_SAME_BITS(model.module.weight.detach(), before);
  optimizer.load_state(state);
  optimizer.step();
  for (const optim::Optimizer* each : {&*optimizer.all()[0], &*optimizer.all()[1]})
    CHECK(each->steps(0) == 2);
}

}  // namespace braid::test::on_device
