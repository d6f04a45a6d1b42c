// Every device keeps the weights and takes the same step: LocalUpdate beside the step on the first
// device.
#include <braid/parallel/local_update.hpp>

#include <braid/core/memory.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/optim.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;
using parallel::DataParallelOptions;
using parallel::LocalUpdate;
using parallel::ReplicateBytes;
using parallel::Update;

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

Tensor batch(std::uint64_t seed, std::int64_t rows = 13) {
  return random_tensor({rows, 4}, DType::float32, device(0), seed);
}
Tensor loss_of(const Tensor& y) { return (y * y).mean(); }

template <class M> DataParallel<M> local(const M& start, int n) {
  return DataParallel<M>(clone(start), group(n), DataParallelOptions{.update = Update::local});
}

template <class M> void check_copies(const DataParallel<M>& model) {
  const auto& copies = model.local_replicas()->parameters();
  for (const std::vector<Tensor>& rank : copies)
    for (std::size_t k = 0; k < rank.size(); ++k) CHECK_SAME_BITS(rank[k], copies.front()[k]);
}

/// The weights of another model, to the bit, on every device.
template <class M> void check_like(const DataParallel<M>& model, const DataParallel<M>& other) {
  const std::vector<Tensor> got = parameters(model), want = parameters(other);
  for (std::size_t k = 0; k < want.size(); ++k) CHECK_SAME_BITS(got[k], want[k]);
  check_copies(model);
}

/// Some steps of both kinds end with the same bits everywhere; after the first forward no parameter
/// is sent.
template <class M, class F>
void check_like_first(const M& start, const F& make, std::int64_t rows, std::int64_t few,
                      std::size_t buffers) {
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    const DataParallel first(clone(start), group(n));
    auto optimizer = make(parameters(first));
    const DataParallel<M> model = local(start, n);
    LocalUpdate locals(model, make);
    for (std::uint64_t step = 0; step < 4; ++step) {
      const Tensor x = batch(step, step == 2 ? few : rows);
      optimizer.zero_grad();
      locals.zero_grad();
      const Tensor y = first(x), z = model(x);
      CHECK_SAME_BITS(z, y);
      loss_of(y).backward();
      loss_of(z).backward();
      optimizer.step();
      locals.step();
      if (step > 0 && n > 1)
        CHECK(model.replicate_bytes().copied <= buffers * static_cast<std::size_t>(n - 1));
      if (n > 1) CHECK(model.replicate_bytes().cached > 0);
    }
    const StateDict of_first = state_dict(first), of_model = state_dict(model);
    const std::vector<StateDict::value_type> want(of_first.begin(), of_first.end()),
        got(of_model.begin(), of_model.end());
    for (std::size_t k = 0; k < want.size(); ++k) CHECK_SAME_BITS(got[k].second, want[k].second);
    check_copies(model);
    for (std::size_t rank = 1; rank < static_cast<std::size_t>(n); ++rank)
      for (const Tensor& p : model.local_replicas()->parameters()[rank])
        CHECK_FALSE(p.grad().defined());
  }
}

}  // namespace

TEST_CASE("local updates end with the same bits as steps on the first device, and send no weights",
          "[parallel][local_update]") {
  check_like_first(
      // 2: fewer rows than devices
      home(Plain{}),
      [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1, .momentum = 0.9}); }, 13,
      2, 0);
  check_like_first(
      home(Plain{}), [](const std::vector<Tensor>& p) { return optim::AdamW(p); }, 13, 2, 0);
  // BatchNorm's buffers are replica 0's, as always: they are sent.
  check_like_first(
      home(Norm{}), [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1}); }, 24, 48,
      2 * 6 * sizeof(float) + sizeof(std::int64_t));  // two rows at least for each
}

TEST_CASE("local updates: what is written to the model is sent again", "[parallel][local_update]") {
  const int n = std::min(3, device_count());
  const DataParallel model = local(home(Plain{}), n);
  LocalUpdate optimizer(model,
                        [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1}); });
  const auto check = [&](std::size_t parameters) {
    const Plain alone = clone(model.module);
    CHECK(allclose(model(batch(1)), alone(batch(1)), 1e-5, 1e-6));
    check_copies(model);
    if (n > 1)
      CHECK(model.replicate_bytes().copied ==
            parameters * sizeof(float) * static_cast<std::size_t>(n - 1));
  };
  const auto step = [&] {
    optimizer.zero_grad();
    loss_of(model(batch(2))).backward();
    optimizer.step();
  };
  step();
  check(0);
  {
    const NoGrad guard;
    model.module.fc1.weight.mul_(2);
  }
  const Plain doubled = clone(model.module);
  CHECK(allclose(model(batch(1)), doubled(batch(1)), 1e-5, 1e-6));
  if (n > 1)
    CHECK(model.replicate_bytes().copied == 24 * sizeof(float) * static_cast<std::size_t>(n - 1));
  check_copies(model);
  load_state_dict(model, state_dict(home(Plain{})));
  (void)model(batch(1));
  check_copies(model);
  // Written between the backward and the step: the step is from there, everywhere.
  optimizer.zero_grad();
  loss_of(model(batch(3))).backward();
  {
    const NoGrad guard;
    model.module.fc2.bias.add_(1);
  }
  optimizer.step();
  check_copies(model);
  step();
  check_copies(model);
}

TEST_CASE(
    "local updates: reduce shows the sum; clipping, several backwards, frozen and unused "
    "parameters, schedules",
    "[parallel][local_update]") {
  for (int n = 1; n <= std::min(4, device_count()); ++n) {
    INFO(n << " devices");
    Plain start = home(Plain{});
    start.fc1.bias.requires_grad_(false);
    Plain plain = clone(start);
    const DataParallel<Plain> model = local(start, n);
    const auto make = [](const std::vector<Tensor>& p) {
      return optim::SGD(p, {.lr = 0.1, .momentum = 0.5});
    };
    auto optimizer = make(parameters(plain));
    LocalUpdate locals(model, make);
    optim::ExponentialSchedule schedule(optimizer, {.gamma = 0.5}),
        local_schedule(locals.main(), {.gamma = 0.5});
    for (std::uint64_t step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      locals.zero_grad();
      for (std::uint64_t part = 0; part < 2; ++part) {
        loss_of(plain(batch(10 * step + part))).backward();
        loss_of(model(batch(10 * step + part))).backward();
      }
      locals.reduce();
      const std::vector<Tensor> want = parameters(plain), got = parameters(model);
      for (std::size_t k = 0; k < want.size(); ++k) {
        CHECK(got[k].grad().defined() == want[k].grad().defined());
        if (want[k].grad().defined()) CHECK(allclose(got[k].grad(), want[k].grad(), 1e-5, 1e-6));
      }
      optim::clip_grad_norm_(parameters(plain), 0.01);
      optim::clip_grad_norm_(parameters(model), 0.01);
      optimizer.step();
      locals.step();
      schedule.step();
      local_schedule.step();
      for (std::size_t k = 0; k < want.size(); ++k) CHECK(allclose(got[k], want[k], 1e-5, 1e-6));
      check_copies(model);
      CHECK_SAME_BITS(model.module.unused.weight, start.unused.weight);
    }
    // A state saved from it goes on in a group of another size.
    const int others = n % std::min(4, device_count()) + 1;
    const DataParallel<Plain> next = local(model.module, others);
    LocalUpdate resumed(next, make);
    resumed.load_state(state_dict(locals.main()));
    resumed.main().set_lr(locals.main().lr());
    for (const auto& [net, step] :
         {std::pair<const DataParallel<Plain>*, LocalUpdate<optim::SGD>*>{&model, &locals},
          {&next, &resumed}}) {
      step->zero_grad();
      loss_of((*net)(batch(77))).backward();
      step->step();
    }
    const std::vector<Tensor> want = parameters(model), got = parameters(next);
    for (std::size_t k = 0; k < want.size(); ++k) CHECK(allclose(got[k], want[k], 1e-5, 1e-6));
    check_copies(next);
  }
}

TEST_CASE("local updates: zero_grad of the model removes the other devices' gradients too",
          "[parallel][local_update]") {
  const int n = std::min(3, device_count());
  const Plain start = home(Plain{});
  const auto make = [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1}); };
  const DataParallel<Plain> model = local(start, n), other = local(start, n);
  LocalUpdate optimizer(model, make), of_other(other, make);
  loss_of(model(batch(1))).backward();  // given up, as after a loss that is not a number
  zero_grad(model);
  loss_of(model(batch(2))).backward();
  loss_of(other(batch(2))).backward();
  optimizer.step();
  of_other.step();
  check_like(model, other);
}

TEST_CASE("local updates: so does zero_grad of a tree that holds the model",
          "[parallel][local_update]") {
  struct Whole : nn::Module {
    DataParallel<Plain> body;
    nn::Linear head;
    explicit Whole(const Plain& start)
        : body(local(start, std::min(3, device_count()))), head(3, 1) {}
    BRAID_FIELDS(body, head)
  };
  Whole whole(home(Plain{}));
  const LocalUpdate optimizer(
      whole.body, [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1}); });
  std::vector<Whole> list;
  list.push_back(std::move(whole));
  loss_of(list[0].body(batch(1))).backward();
  const auto with_gradient = [&] {
    int count = 0;
    for (const std::vector<Tensor>& rank : optimizer.weights())
      for (const Tensor& p : rank) count += p.grad().defined();
    return count;
  };
  CHECK(with_gradient() == 4 * std::min(3, device_count()));
  zero_grad(list);
  CHECK(with_gradient() == 0);
}

TEST_CASE("local updates: a weight that may be written unseen does not end an earlier graph",
          "[parallel][local_update]") {
  const int n = std::min(3, device_count());
  const Plain start = home(Plain{});
  const auto make = [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1}); };
  const DataParallel<Plain> model = local(start, n), other = local(start, n);
  LocalUpdate optimizer(model, make), of_other(other, make);
  (void)model(batch(1));
  for (const Tensor& p : parameters(model)) p.storage()->expose();  // as data<T>() does
  for (const auto& [net, step] :
       {std::pair<const DataParallel<Plain>*, LocalUpdate<optim::SGD>*>{&model, &optimizer},
        {&other, &of_other}}) {
    const Tensor first = loss_of((*net)(batch(2))), second = loss_of((*net)(batch(3)));
    // sent at each call: nobody can say that it has not changed
    if (n > 1) CHECK((net->replicate_bytes().copied > 0) == (net == &model));
    first.backward();
    second.backward();
    step->step();
  }
  check_like(model, other);
}

TEST_CASE("local updates: the gradients are summed in buckets", "[parallel][local_update]") {
  const int n = std::min(3, device_count());
  const Plain start = home(Plain{});
  const auto make = [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1}); };
  const DataParallel<Plain> whole = local(start, n);
  LocalUpdate of_whole(whole, make);
  loss_of(whole(batch(1))).backward();
  of_whole.step();
  // the weights have 96, 24, 72 and 12
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{80}, std::size_t{120}}) {
    INFO(bytes);
    const DataParallel<Plain> model(
        clone(start), group(n),
        DataParallelOptions{.update = Update::local, .bucket_bytes = bytes});
    LocalUpdate optimizer(model, make);
    loss_of(model(batch(1))).backward();
    optimizer.step();
    check_like(model, whole);
  }
}

TEST_CASE("local updates: replicate_bytes are the forward's, not the step's",
          "[parallel][local_update]") {
  const int n = std::min(3, device_count());
  if (n < 2) return;
  const DataParallel<Plain> model = local(home(Plain{}), n);
  LocalUpdate optimizer(model,
                        [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1}); });
  {
    const NoGrad guard;
    model.module.fc2.bias.add_(1);
  }
  const Tensor loss = loss_of(model(batch(1)));
  const ReplicateBytes of_forward = model.replicate_bytes();
  CHECK(of_forward.copied == 3 * sizeof(float) * static_cast<std::size_t>(n - 1));
  loss.backward();
  optimizer.step();
  CHECK(model.replicate_bytes().copied == of_forward.copied);
  CHECK(model.replicate_bytes().cached == of_forward.cached);
}

TEST_CASE("local updates: an error changes no parameter", "[parallel][local_update][errors]") {
  const int n = std::min(3, device_count());
  if (n < 2) return;
  const Plain start = home(Plain{});
  const auto make = [](const std::vector<Tensor>& p) { return optim::AdamW(p); };
  const DataParallel<Plain> model = local(start, n), without = local(start, n);
  LocalUpdate optimizer(model, make), of_without(without, make);
  loss_of(model(batch(1))).backward();
  loss_of(without(batch(1))).backward();
  of_without.step();
  const std::vector<Tensor> before = copies_of(parameters(model));
  // The last device has no memory for the gradients, or for the optimizer's state.
  int failed = 0;
  for (std::uint64_t nth = 1;; ++nth) {
    const Device last = device(n - 1);
    fail_allocation(last, nth);
    bool threw = false;
    try {
      optimizer.step();
    } catch (const OutOfMemoryError&) {
      threw = true;
    }
    fail_allocation(last, 0);
    if (!threw) break;
    ++failed;
    const std::vector<Tensor> now = parameters(model);
    for (std::size_t k = 0; k < now.size(); ++k) CHECK_SAME_BITS(now[k], before[k]);
    check_copies(model);
  }
  CHECK(failed > 0);
  // No gradient was counted twice.
  check_like(model, without);
  CHECK_FALSE(test::same_bits(parameters(model).front(), before.front()).empty());
}

TEST_CASE("local updates: what cannot be is refused", "[parallel][local_update][errors]") {
  const auto make = [](const std::vector<Tensor>& p) { return optim::SGD(p); };
  const DataParallel ordinary(home(nn::Linear(2, 2)), group(1));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "LocalUpdate: expected a DataParallel with update = Update::local, got one without",
      LocalUpdate(ordinary, make));
  CHECK_THROWS_TEXT(ArgumentError, "DataParallel: expected shards or local updates",
                    DataParallel(home(nn::Linear(2, 2)), group(1),
                                 DataParallelOptions{.shards = 2, .update = Update::local}));
  CHECK_THROWS_TEXT(ArgumentError, "data_parallel: expected no Update::local",
                    parallel::data_parallel(home(nn::Linear(2, 2)), ones({2, 2}), group(1),
                                            DataParallelOptions{.update = Update::local}));
  CHECK_THROWS_TEXT(
      ArgumentError, "LocalUpdate: expected a DataParallel with a device at least, got none",
      LocalUpdate(DataParallel(nn::Linear(2, 2), {}, DataParallelOptions{.update = Update::local}),
                  make));
  if (device_count() < 2) return;
  DataParallel model(home(nn::Linear(2, 2)), group(2),
                     DataParallelOptions{.update = Update::local});
  LocalUpdate optimizer(model, make);
  (void)model(ones({2, 2}, {.device = device(0)}));
  to(model, DType::float64);
  CHECK_THROWS_TEXT(ArgumentError,
                    "LocalUpdate: expected the model's parameters to be those that it had at first",
                    model(ones({2, 2}, {.device = device(0), .dtype = DType::float64})));
}

}  // namespace braid::test::on_device
