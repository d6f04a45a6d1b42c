// Uses of DistributedDataParallel that fail, or could train ranks apart in silence.
#include <chrono>
#include <optional>

#include "distributed.hpp"

namespace braid::test {
namespace {

/// y = x · a, or x · (a + b).
struct Two : nn::Module {
  nn::Linear a{1, 1, {.bias = false}}, b{1, 1, {.bias = false}};
  Tensor operator()(const Tensor& x, const bool& both) const { return both ? a(x) + b(x) : a(x); }
  BRAID_FIELDS(a, b)
};
using Model = DistributedDataParallel<Two>;

/// The sum of w · x over the ranks; in a checkpointed function if `how` is not 0.
struct Summed : nn::Module {
  nn::Parameter w{ones({1, 1})};
  Tensor operator()(const Tensor& x, const int& how) const {
    const auto sum = [&](const Tensor& t) {
      ReplicaGroup* const group = replica_group();
      if (how == 2) return t * group->all_reduce(t.sum().item<double>());
      return group->all_reduce(std::vector<Tensor>{t})[0];
    };
    return how == 0 ? sum(x * w) : checkpoint(sum, x * w);
  }
  BRAID_FIELDS(w)
};

/// The rank's row: 1, 2, …; the mean of two ranks is 1.5.
Tensor row_of(const Ranks& ranks) { return full({1, 1}, 1.0 + ranks->rank()).to(ranks->device()); }

Two on(const Ranks& ranks) {
  Two net;
  to(net, ranks->device());
  return net;
}

double gradient_of(const Model& model, std::size_t k = 0) {
  const Tensor g = parameters(model)[k].grad();
  return g.defined() ? g.item<double>() : 0;
}

void expect_text(const std::string& got, const std::string& part) {
  expect(got.find(part) != std::string::npos, str("'", part, "' in '", got, "'"));
}

}  // namespace

TEST_CASE("distributed: a parameter that is wrapped again is reduced by the last wrapper",
          "[distributed][errors]") {
  on_world(2, [](const Ranks& ranks) {
    std::optional<Model> first;
    first.emplace(on(ranks), ranks);
    Two other = on(ranks);
    nn::tie(other.a.weight, first->module.a.weight);
    const Model second(std::move(other), ranks);
    expect_text(text_of([&] { (void)(*first)(row_of(ranks), true); }), "another one has taken");
    first.reset();
    second(row_of(ranks), true).sum().backward();
    expect(gradient_of(second) == 1.5, str("1.5, got ", gradient_of(second)));
  });
}

TEST_CASE("distributed: two models in one backward, of which the second fails",
          "[distributed][errors]") {
  for (const bool is_static : {false, true}) {
    INFO("static_graph " << is_static);
    on_world(2, [&](const Ranks& ranks) {
      const Model g(on(ranks), ranks, {.static_graph = is_static}), d(on(ranks), ranks);
      const Tensor x = row_of(ranks);
      const auto clear = [&] {
        for (const Model* model : {&g, &d})
          for (const Tensor& p : parameters(*model)) p.set_grad({});
      };
      for (int i = 0; i < 2; ++i) {
        (g(x, true) + d(x, true)).sum().backward();
        clear();
      }
      // g's gradients are complete first, or last
      for (const bool first : {true, false}) {
        const Tensor deep = tanh(tanh(first ? d(x, false) : g(x, true))),
                     shallow = first ? g(x, true) : d(x, false);
        expect_text(text_of([&] { (deep + shallow).sum().backward(); }),
                    "expected a gradient of every parameter on every rank");
        expect(gradient_of(g) == 0 && gradient_of(d) == 0, "no gradient");
      }
      g(x, true).sum().backward();
      expect(gradient_of(g) == 1.5, str("1.5, got ", gradient_of(g)));
    });
  }
}

TEST_CASE("distributed: a sum over ranks in a checkpointed function is refused",
          "[distributed][errors]") {
  on_world(2, [](const Ranks& ranks) {
    const DistributedDataParallel model(placed_on(Summed{}, ranks->device()), ranks);
    const Tensor x = row_of(ranks);
    for (const int how : {1, 2})
      expect_text(text_of([&] { (void)model(x, how); }),
                  "ReplicaGroup::all_reduce: expected a call outside of checkpoint");
    expect(model(x, 0).item<double>() == 3, "the sum over the ranks");
  });
}

TEST_CASE("distributed: virtual replicas: one backward over two forwards is refused",
          "[distributed][errors]") {
  for (const int n : {1, 2})
    on_world(n, [&](const Ranks& ranks) {
      const Model model(on(ranks), ranks, {.virtual_replicas = 4});
      const Tensor x = full({4 / n, 1}, 1.0).to(ranks->device()),
                   longer = full({8 / n, 1}, 1.0).to(ranks->device());
      for (const Tensor& other : {x, longer}) {
        const Tensor one = model(x, true).mean(), two = model(other, true).mean();
        expect_text(text_of([&] { (one + two).backward(); }), "the backward of one forward");
        expect(!parameters(model)[0].grad().defined(), "no gradient");
      }
      model(x, true).mean().backward();
      expect(gradient_of(model) == 1, str("1, got ", gradient_of(model)));
    });
}

TEST_CASE("distributed: a parameter that trains only after wrapping is refused",
          "[distributed][errors]") {
  on_world(2, [](const Ranks& ranks) {
    Two net = on(ranks);
    net.b.weight.requires_grad_(false);
    const Model model(std::move(net), ranks);
    model(row_of(ranks), true).sum().backward();
    expect(gradient_of(model) == 1.5, str("1.5, got ", gradient_of(model)));
    parameters(model)[1].requires_grad_(true);
    expect_text(text_of([&] { (void)model(row_of(ranks), true); }), "wrap the model again");
  });
}

TEST_CASE("distributed: a hook that fails on one rank fails on all",
          "[distributed][errors][once]") {
  for (const bool at_once : {true, false}) {
    INFO("at once " << at_once);
    const auto start = std::chrono::steady_clock::now();
    on_world(2, [&](const Ranks& ranks) {
      const auto hook = [at_once](parallel::ProcessCommunicator& c,
                                  const parallel::GradientBucket& bucket) {
        if (at_once && c.rank() == 1) throw Error("no memory");
        parallel::HookResult result = parallel::all_reduce_hook(c, bucket);
        if (c.rank() == 1) result.result = []() -> Tensor { throw Error("no memory"); };
        return result;
      };
      std::optional<Model> model;
      expect_text(text_of([&] {
                    // rank 0 may still be in here when rank 1 fails
                    model.emplace(on(ranks), ranks, parallel::DistributedOptions{.hook = hook});
                    (*model)(row_of(ranks), true).sum().backward();
                  }),
                  "no memory");
      expect(!model || !parameters(*model)[0].grad().defined(), "no gradient");
      // the failure at the end has been voted on: the communicator goes on
      if (!at_once) ranks->barrier();
    });
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));  // of 20
  }
}

TEST_CASE("distributed: an allocation that fails on one rank fails on all",
          "[distributed][errors]") {
  if (device_count() < 2) return;
  // each rank alone uses its device
  for (const bool unused : {false, true}) {
    INFO("unused " << unused);
    int failed = 0;
    on_world(2, [&](const Ranks& ranks) {
      const Model model(on(ranks), ranks, {.find_unused_parameters = unused});
      const Tensor x = row_of(ranks);
      for (std::uint64_t k = 0; k < 30; ++k) {
        // with a gradient to start with: nothing is allocated before the ranks vote
        const Tensor y = model(x, !unused).sum(), dy = ones_like(y);
        ranks->barrier();
        if (ranks->rank() == 1) fail_allocation(ranks->device(), k);
        const std::string text = text_of([&] { y.backward(dy); });
        if (ranks->rank() == 1) fail_allocation(ranks->device(), 0);
        Tensor count = full({1}, text.empty() ? 0.0 : 1.0).to(ranks->device());
        ranks->all_reduce(count);
        expect(count.item<double>() != 1, str("both ranks, or none, got ", text, " at ", k));
        if (text.empty() && !unused)
          expect(gradient_of(model) == 1.5, str("1.5, got ", gradient_of(model)));
        if (!text.empty() && ranks->rank() == 0) {
          expect_text(text, "rank 1");
          ++failed;
        }
        for (const Tensor& p : parameters(model)) p.set_grad({});
      }
    });
    CHECK(failed > 1);
  }
}

TEST_CASE("distributed: virtual replicas: a bucket for which there is no memory fails on all",
          "[distributed][errors]") {
  if (device_count() < 2) return;
  const auto start = std::chrono::steady_clock::now();
  std::string heard;
  on_world(2, [&](const Ranks& ranks) {
    const Model model(on(ranks), ranks, {.virtual_replicas = 2});
    for (std::uint64_t k = 40; k > 0; --k) {  // the last allocation first
      Tensor y, dy;
      const auto forward = [&] {
        y = model(row_of(ranks), true).sum();
        dy = ones_like(y);
        ranks->barrier();
      };
      if (!text_of(forward).empty()) return;  // the communicator has ended
      if (ranks->rank() == 1) fail_allocation(ranks->device(), k);
      const std::string text = text_of([&] { y.backward(dy); });
      if (ranks->rank() == 1) fail_allocation(ranks->device(), 0);
      if (ranks->rank() == 0) heard += text;
      for (const Tensor& p : parameters(model)) p.set_grad({});
    }
  });
  CHECK(heard.find("bucket 0 could not be sent on rank 1") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));  // of 20
}

TEST_CASE("distributed: onto gradients whose elements share memory", "[distributed]") {
  on_world(2, [](const Ranks& ranks) {
    const DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks);
    const Tensor x = inputs(4, 1).to(ranks->device());
    std::vector<Tensor> sums[2];
    for (const bool shared : {false, true}) {
      for (const Tensor& p : parameters(model)) {
        const Tensor old = full({}, 2.0, {.device = p.device()}).expand(p.shape());
        p.set_grad(shared ? old : old.clone());
      }
      model(x).sum().backward();
      for (const Tensor& p : parameters(model)) sums[shared ? 1 : 0].push_back(p.grad().clone());
    }
    for (std::size_t i = 0; i < sums[0].size(); ++i)
      expect(equal(sums[0][i], sums[1][i]), "the same sums");
  });
}

TEST_CASE("distributed: PowerSGD: a backward that fails leaves its state as it was",
          "[distributed][errors]") {
  std::vector<Tensor> of_runs[2];
  for (const bool fails : {false, true})
    on_world(2, [&](const Ranks& ranks) {
      DistributedDataParallel model(
          placed_on(seeded<Mlp>(), ranks->device()), ranks,
          {.bucket_bytes = 1024, .hook = parallel::PowerSgd({.start_powerSGD_iter = 2})});
      for (std::uint64_t step = 0; step < 6; ++step) {
        const Tensor x = rows_of(inputs(8, step), ranks->rank(), 2).to(ranks->device());
        if (fails && (step == 1 || step == 4)) {
          const Tensor y = model(x * 3);
          const Tensor faulty =
              record("faulty", {y}, y.detach() * 1, [&](const Tensor& dy) -> Grads {
                if (ranks->rank() == 1) throw ShapeError("asked to fail");
                return {dy};
              });
          expect_text(text_of([&] { faulty.mean().backward(); }), "asked to fail");
        }
        zero_grad(model);
        model(x).mean().backward();
        if (ranks->rank() == 0)
          for (const Tensor& p : parameters(model))
            of_runs[fails ? 1 : 0].push_back(p.grad().detach().to(device(0)).clone());
      }
    });
  check_same(of_runs[1], of_runs[0]);
}

TEST_CASE("distributed: no communicator", "[distributed][errors]") {
  const Ranks none;
  CHECK_THROWS_TEXT(ArgumentError, "DistributedDataParallel: expected a communicator, got null",
                    Model(Two{}, none));
  CHECK_THROWS_TEXT(ArgumentError, "checkpoint_ranks: expected a communicator, got null",
                    (void)parallel::checkpoint_ranks(none));
  const auto make = [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 1}); };
  CHECK_THROWS_TEXT(ArgumentError, "ZeroRedundancyOptimizer: expected a communicator, got null",
                    parallel::ZeroRedundancyOptimizer(std::vector<Tensor>{ones({2})}, none, make));
}

TEST_CASE("distributed: PowerSGD begins after the buckets have been rebuilt",
          "[distributed][errors]") {
  CHECK_THROWS_TEXT(ArgumentError, "PowerSgd: expected start_powerSGD_iter >= 2*",
                    parallel::PowerSgd({.start_powerSGD_iter = 1}));
  CHECK_NOTHROW(parallel::PowerSgd(
      {.start_powerSGD_iter = 0, .use_error_feedback = false, .warm_start = false}));
}

}  // namespace braid::test
