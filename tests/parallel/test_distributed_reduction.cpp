// DistributedDataParallel: what is compared, how buckets are made, which gradients are reduced.
#include "distributed.hpp"

namespace braid::test {

namespace {

/// The texts of the errors of all ranks; "" for none.
std::vector<std::string> texts_of_ranks(int n, const std::function<void(const Ranks&)>& f) {
  std::vector<std::exception_ptr> errors;
  on_world(n, f, 1, &errors);
  std::vector<std::string> texts;
  for (const auto& e : errors) texts.push_back(e ? exception_message(e) : std::string());
  return texts;
}
void check_texts(const std::vector<std::string>& texts, std::string_view pattern) {
  for (const std::string& text : texts) {
    INFO(text);
    CHECK(matches(text, pattern));
  }
}

std::vector<Tensor> gradients_at_home(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> list;
  for (const Tensor& p : parameters)
    list.push_back(p.grad().defined() ? p.grad().detach().to(device(0)).clone() : Tensor());
  return list;
}

}  // namespace

TEST_CASE("distributed: D2, D3 models that differ are an error on all ranks, by name",
          "[distributed]") {
  struct Case {
    const char* name;
    std::function<nn::Sequential<nn::Linear, nn::Linear>(int rank)> model;
    const char* text;
  };
  using Pair = nn::Sequential<nn::Linear, nn::Linear>;
  const auto frozen = [](Pair pair) {
    requires_grad_(pair, false);
    return pair;
  };
  const Case cases[] = {
      {"shape", [](int rank) { return Pair{nn::Linear(3, 4), nn::Linear(4, rank == 1 ? 3 : 2)}; },
       "*the same model on all ranks, got parameter '1.weight' [3, 4]*on rank 1 and parameter "
       "'1.weight' [2, 4]*on rank 0*"},
      {"number",
       [](int rank) { return Pair{nn::Linear(3, 4), nn::Linear(4, 2, {.bias = rank != 2})}; },
       "*got no further parameter on rank 2 and parameter '1.bias' [2]*(3 and 4 parameters*"},
      {"dtype",
       [](int rank) {
         Pair pair{nn::Linear(3, 4), nn::Linear(4, 2)};
         if (rank == 0) to(pair, DType::float64);
         return pair;
       },
       "*got parameter '0.weight' [4, 3], float32 on rank 1 and*float64 on rank 0*"},
      {"frozen",
       [](int rank) {
         Pair pair{nn::Linear(3, 4), nn::Linear(4, 2)};
         if (rank == 1) requires_grad_(std::get<1>(pair.layers), false);
         return pair;
       },
       "*parameter '1.weight' [2, 4], float32, without a gradient on rank 1*"},
      {"nothing to train on one rank",
       [&](int rank) {
         Pair pair{nn::Linear(3, 4), nn::Linear(4, 2)};
         return rank == 1 ? frozen(std::move(pair)) : std::move(pair);
       },
       "*is not needed when a module doesn't have any parameter that requires a gradient*(rank 1)"},
      {"nothing to train", [&](int) { return frozen(Pair{nn::Linear(3, 4), nn::Linear(4, 2)}); },
       "*is not needed when a module doesn't have any parameter that requires a gradient*"}};
  for (const Case& c : cases) {
    INFO(c.name);
    check_texts(texts_of_ranks(3,
                               [&](const Ranks& ranks) {
                                 DistributedDataParallel model(
                                     placed_on(c.model(ranks->rank()), ranks->device()), ranks);
                               }),
                c.text);
  }
  CHECK_THROWS_TEXT(ArgumentError, "*expected bucket_bytes > 0, got 0", [] {
    DistributedDataParallel model(
        Mlp{}, parallel::detail::make_thread_communicators({device(0)})[0], {.bucket_bytes = 0});
  }());
}

TEST_CASE("distributed: D3 rank 0's parameters and buffers are sent to all", "[distributed]") {
  for (const bool sync : {true, false}) {
    Results results(3);
    on_world(3, [&](const Ranks& ranks) {
      Net net = seeded<Net>(static_cast<std::uint64_t>(ranks->rank()));
      net.seen.fill_(ranks->rank() + 1.0);
      DistributedDataParallel model(placed_on(std::move(net), ranks->device()), ranks,
                                    {.init_sync = sync});
      std::vector<Tensor> values = values_of(model);
      values.push_back(model->seen.to(device(0)).clone());
      results.set(ranks->rank(), values);
    });
    if (sync) results.check_equal();
    else CHECK(numbers(results[0][0]) != numbers(results[1][0]));
    CHECK(results[2].back().item<double>() == (sync ? 1 : 3));
  }
}

TEST_CASE("distributed: D4, D5 one bucket at first, then in the order of arrival",
          "[distributed]") {
  using List = std::vector<std::size_t>;
  using Lists = std::vector<List>;
  // fc1 240 + 40, fc2 1200 + 30, fc3 120 + 4 numbers of 4 bytes
  std::vector<Lists> seen(2);
  on_world(2, [&](const Ranks& ranks) {
    DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks,
                                  {.bucket_bytes = 600});
    const auto step = [&] {
      model(inputs(4, 1).to(ranks->device())).sum().backward();
      return model.distributed().buckets();
    };
    const Lists first = step(), second = step();
    if (ranks->rank() == 0) seen = {first, second};
  });
  CHECK(seen[0] == Lists{{5, 4, 3, 2, 1, 0}});
  // Backward reaches fc3 (496 bytes) first. A bucket is closed when it has 600 bytes.
  REQUIRE(seen[1].size() == 3);
  List all;
  for (const List& bucket : seen[1]) all.insert(all.end(), bucket.begin(), bucket.end());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] / 2 == 2 - i / 2);
  CHECK(seen[1][0].size() >= 3);
  // with unused parameters the order may change, so the buckets are made at once and stay
  on_world(2, [&](const Ranks& ranks) {
    DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks,
                                  {.bucket_bytes = 600, .find_unused_parameters = true});
    const Lists before = model.distributed().buckets();
    model(inputs(4, 1).to(ranks->device())).sum().backward();
    model(inputs(4, 1).to(ranks->device())).sum().backward();
    if (ranks->rank() == 0) seen = {before, model.distributed().buckets()};
  });
  CHECK(seen[0].size() > 1);
  CHECK(seen[0] == seen[1]);
}

TEST_CASE("distributed: D6 a full bucket is reduced while backward runs, in the order of buckets",
          "[distributed]") {
  on_world(2, [](const Ranks& ranks) {
    std::string order;
    DistributedDataParallel model(
        placed_on(seeded<Mlp>(), ranks->device()), ranks,
        {.bucket_bytes = 600,
         .hook = [&](parallel::ProcessCommunicator& all, const parallel::GradientBucket& bucket) {
           order += str(bucket.index, bucket.is_last ? "last " : " ");
           return parallel::all_reduce_hook(all, bucket);
         }});
    for (int step = 0; step < 3; ++step) {
      order.clear();
      const Tensor x = inputs(4, 1).to(ranks->device()).requires_grad_();
      const Tensor in = record("first", {x}, x.detach().clone(), [&](const Tensor& dy) -> Grads {
        order += "end ";  // the last node
        return {dy};
      });
      model(in).mean().backward();
      expect(order == (step == 0 ? "end 0last " : "0 1 end 2last "), "the order, got " + order);
    }
  });
}

TEST_CASE("distributed: D21 dtypes have separate buckets", "[distributed]") {
  struct Mixed : nn::Module {
    nn::Linear fc{6, 4};
    nn::Parameter scale{ones({4}, {.dtype = DType::float64})};
    Tensor operator()(const Tensor& x) const { return fc(x).to(DType::float64) * scale; }
    BRAID_FIELDS(fc, scale)
  };
  Results results(2);
  on_world(2, [&](const Ranks& ranks) {
    DistributedDataParallel model(placed_on(seeded<Mixed>(), ranks->device()), ranks);
    for (int step = 0; step < 2; ++step) {
      zero_grad(model);
      model(rows_of(inputs(8, 5), ranks->rank(), 2).to(ranks->device())).mean().backward();
    }
    expect(model.distributed().buckets().size() == 2, "two buckets");
    results.set(ranks->rank(), gradients_at_home(parameters(model)));
  });
  Mixed alone = placed_on(seeded<Mixed>(), device(0));
  alone(inputs(8, 5)).mean().backward();
  results.check_equal();
  check_close(results[0], gradients_of(parameters(alone)), {1e-6, 1e-6});
}

TEST_CASE("distributed: D8 no_sync accumulates, the next backward reduces the sum",
          "[distributed]") {
  for (const bool views : {false, true}) {
    Results local(2), reduced(2);
    on_world(2, [&](const Ranks& ranks) {
      DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks,
                                    {.gradient_as_bucket_view = views});
      const auto backward = [&](std::uint64_t seed) {
        model(rows_of(inputs(8, seed), ranks->rank(), 2).to(ranks->device())).mean().backward();
      };
      for (int round = 0; round < 2; ++round) {  // the second one over rebuilt buckets
        zero_grad(model);
        {
          const auto guard = model.no_sync();
          backward(1);
          backward(2);
        }
        local.set(ranks->rank(), gradients_at_home(parameters(model)));
        backward(3);
        reduced.set(ranks->rank(), gradients_at_home(parameters(model)));
      }
    });
    CHECK(numbers(local[0][0]) != numbers(local[1][0]));
    reduced.check_equal();
    Mlp alone = placed_on(seeded<Mlp>(), device(0));
    for (const std::uint64_t seed : {1u, 2u, 3u}) alone(inputs(8, seed)).mean().backward();
    check_close(reduced[0], gradients_of(parameters(alone)), {1e-6, 1e-6});
  }
}

TEST_CASE("distributed: D9 unused parameters", "[distributed]") {
  for (const bool views : {false, true}) {
    Results results(2);
    on_world(2, [&](const Ranks& ranks) {
      DistributedDataParallel model(
          placed_on(seeded<Branches>(), ranks->device()), ranks,
          {.bucket_bytes = 64, .find_unused_parameters = true, .gradient_as_bucket_view = views});
      const Tensor x = rows_of(inputs(8, 5), ranks->rank(), 2).to(ranks->device());
      // used by rank 1 only; then by none: the old gradient stays
      model(x, ranks->rank() == 1).mean().backward();
      const Tensor kept = model->other.weight.grad().clone();
      results.set(ranks->rank(), gradients_at_home(parameters(model)));
      model(x, false).mean().backward();
      same(model->other.weight.grad(), kept);
      zero_grad(model);
      model(x, false).mean().backward();
      expect(!model->other.weight.grad().defined(), "no gradient of a parameter that none uses");
    });
    results.check_equal();
    Branches alone = placed_on(seeded<Branches>(), device(0));
    (alone(rows_of(inputs(8, 5), 0, 2), false).mean() +
     alone(rows_of(inputs(8, 5), 1, 2), true).mean())
        .backward();
    std::vector<Tensor> want;
    for (const Tensor& g : gradients_of(parameters(alone))) want.push_back(g / 2);
    check_close(results[0], want, {1e-6, 1e-6});
  }
}

TEST_CASE("distributed: D9 an unused parameter without the option is named on all ranks",
          "[distributed]") {
  check_texts(texts_of_ranks(3,
                             [](const Ranks& ranks) {
                               DistributedDataParallel model(
                                   placed_on(seeded<Branches>(), ranks->device()), ranks);
                               const Tensor x = inputs(4, 5).to(ranks->device());
                               std::string text =
                                   text_of([&] { model(x, ranks->rank() != 1).mean().backward(); });
                               for (const Tensor& p : parameters(model))
                                 expect(!p.grad().defined(), "no gradient");
                               model(x, true).mean().backward();  // the next step works
                               throw Error(text);
                             }),
              "backward: expected a gradient of every parameter on every rank, got none on rank 1: "
              "'other.weight', 'other.bias' (no gradient has changed; find_unused_parameters*");
}

TEST_CASE("distributed: D10 static graph: the first step finds the unused parameters",
          "[distributed]") {
  Results results(2);
  std::vector<std::string> texts = texts_of_ranks(2, [&](const Ranks& ranks) {
    DistributedDataParallel model(placed_on(seeded<Branches>(), ranks->device()), ranks,
                                  {.bucket_bytes = 64, .static_graph = true});
    const Tensor x = rows_of(inputs(8, 5), ranks->rank(), 2).to(ranks->device());
    for (int step = 0; step < 3; ++step) {
      zero_grad(model);
      // a parameter that is used outside of the forward, too
      (model(x, false).mean() + model->first.bias.sum()).backward();
      expect(!model->other.weight.grad().defined(), "no gradient of an unused parameter");
    }
    std::vector<Tensor> used = parameters(model);
    used.resize(4);
    results.set(ranks->rank(), gradients_at_home(used));
    model(x, ranks->rank() == 0).mean().backward();
  });
  check_texts(texts,
              "*static_graph: expected the loss to use the same parameters*rank 0: "
              "'other.weight', 'other.bias'");
  results.check_equal();
  Branches alone = placed_on(seeded<Branches>(), device(0));
  (alone(inputs(8, 5), false).mean() + alone.first.bias.sum()).backward();
  std::vector<Tensor> want = gradients_of(parameters(alone));
  want.resize(4);
  check_close(results[0], want, {1e-6, 1e-6});
}

TEST_CASE("distributed: D10 static graph: a backward inside of a backward", "[distributed]") {
  struct Inner : nn::Module {  // its gradient is computed by a backward inside of the op's
    nn::Linear fc{6, 6}, last{6, 4};
    Tensor operator()(const Tensor& x) const {
      Tensor h;
      {
        const NoGrad guard;
        h = tanh(fc(x));
      }
      return last(record("checkpointed", {x}, h, [this, x](const Tensor& dy) -> Grads {
        const GradMode on(true);
        const Tensor leaf = x.detach().requires_grad_();
        tanh(fc(leaf)).backward(dy.detach());
        return {leaf.grad()};
      }));
    }
    BRAID_FIELDS(fc, last)
  };
  Results results(2);
  const auto run = [](const auto& model, const Tensor& x) {
    const Tensor in = x.detach().requires_grad_();
    model(in).mean().backward();
  };
  on_world(2, [&](const Ranks& ranks) {
    DistributedDataParallel model(placed_on(seeded<Inner>(), ranks->device()), ranks,
                                  {.static_graph = true});
    for (int step = 0; step < 3; ++step) {
      zero_grad(model);
      run(model, rows_of(inputs(8, 5), ranks->rank(), 2).to(ranks->device()));
    }
    results.set(ranks->rank(), gradients_at_home(parameters(model)));
  });
  results.check_equal();
  Inner alone = placed_on(seeded<Inner>(), device(0));
  run(alone, inputs(8, 5));
  check_close(results[0], gradients_of(parameters(alone)), {1e-6, 1e-6});
}

TEST_CASE("distributed: D11 gradients are views of the buckets", "[distributed]") {
  on_world(2, [](const Ranks& ranks) {
    DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks,
                                  {.gradient_as_bucket_view = true});
    const Tensor x = inputs(4, 5).to(ranks->device());
    const auto step = [&] { model(x).mean().backward(); };
    step();
    step();
    const std::vector<Tensor> list = parameters(model);
    std::vector<const void*> first;
    for (const Tensor& p : list) {
      first.push_back(p.grad().id()->data());
      for (const Tensor& q : list)  // all in one buffer
        expect(std::abs(static_cast<const char*>(q.grad().id()->data()) -
                        static_cast<const char*>(first.back())) < 16384,
               "gradients in one buffer");
    }
    zero_grad(model);
    step();
    for (std::size_t k = 0; k < list.size(); ++k)
      expect(list[k].grad().id()->data() == first[k], "the gradient at the same place");
  });
}

TEST_CASE("distributed: a backward that fails on one rank fails on all, without an effect",
          "[distributed]") {
  struct Fails : nn::Module {
    nn::Linear fc1{6, 5}, fc2{5, 4};
    mutable bool fail = false;
    Tensor operator()(const Tensor& x) const {
      const Tensor h = fc1(x);
      if (!fail) return fc2(h);
      const Tensor copy = h.detach() * 1;
      return fc2(record("faulty", {h}, copy,
                        [](const Tensor&) -> Grads { throw ShapeError("faulty: asked to fail"); }));
    }
    BRAID_FIELDS(fc1, fc2)
  };
  for (const bool find : {false, true}) {
    Results results(3);
    const std::vector<std::string> texts = texts_of_ranks(3, [&](const Ranks& ranks) {
      DistributedDataParallel model(placed_on(seeded<Fails>(), ranks->device()), ranks,
                                    {.bucket_bytes = 64, .find_unused_parameters = find});
      const Tensor x = inputs(4, 5).to(ranks->device());
      const auto step = [&] { model(x).mean().backward(); };
      step();
      const std::vector<Tensor> before = gradients_at_home(parameters(model));
      model->fail = ranks->rank() == 1;
      const std::string text = text_of(step);
      const std::vector<Tensor> after = gradients_at_home(parameters(model));
      for (std::size_t k = 0; k < before.size(); ++k) same(after[k], before[k]);
      model->fail = false;
      step();
      results.set(ranks->rank(), gradients_at_home(parameters(model)));
      throw Error(text);
    });
    CHECK(texts[1] == "faulty: asked to fail");
    for (const int rank : {0, 2})
      CHECK(matches(texts[usize(rank)],
                    "backward: expected all ranks to succeed, got a failure on rank 1: ShapeError: "
                    "faulty: asked to fail (no gradient has changed*"));
    results.check_equal();
  }
}

TEST_CASE("distributed: hooks of parameters, grad(), create_graph, evaluation", "[distributed]") {
  on_world(2, [](const Ranks& ranks) {
    DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks);
    const Tensor x = rows_of(inputs(8, 5), ranks->rank(), 2).to(ranks->device());
    int gradient = 0, accumulated = 0;
    const auto a = model->fc1.weight.register_hook([&](const Tensor& g) {
      ++gradient;
      return g * 0;
    });
    const auto b = model->fc1.weight.register_post_accumulate_grad_hook([&](const Tensor& p) {
      ++accumulated;
      expect(p.grad().defined(), "a gradient");
    });
    model(x).mean().backward();
    expect(gradient == 1 && accumulated == 1, "each hook once");
    expect(model->fc1.weight.grad().to_vector<double>() == std::vector<double>(240),
           "the hook's gradient");
    a.remove();
    b.remove();
    // grad() reduces nothing: one rank may call it alone
    zero_grad(model);
    const Tensor loss = model(x).mean();
    if (ranks->rank() == 0) (void)grad(loss, {model->fc1.weight}, true);
    loss.backward({}, true, true);
    eval(model);
    const NoGrad guard;
    if (ranks->rank() == 1) (void)model(x);  // alone: no collective
  });
}

}  // namespace braid::test
