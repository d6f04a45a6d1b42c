// DistributedDataParallel: hooks, buffers, join, SyncBatchNorm over ranks, ZeRO.
#include "distributed.hpp"

namespace braid::test {

namespace {

template <class M, class F> std::vector<Tensor> trained(M& model, int steps, const F& loss) {
  optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    loss(step).backward();
    optimizer.step();
  }
  return values_of(model);
}

std::vector<Tensor> mlp_alone(int steps) {
  Mlp model = placed_on(seeded<Mlp>(), device(0));
  return trained(model, steps, [&](int step) {
    const auto seed = static_cast<std::uint64_t>(step);
    return mse_loss(model(inputs(12, seed)), targets(12, seed));
  });
}

Results mlp_on_ranks(int n, int steps, const std::function<DistributedOptions()>& options) {
  Results results(n);
  on_world(n, [&](const Ranks& ranks) {
    DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks, options());
    results.set(ranks->rank(), trained(model, steps, [&](int step) {
                  const auto seed = static_cast<std::uint64_t>(step);
                  const Tensor y = model(rows_of(inputs(12, seed), ranks->rank(), n));
                  return mse_loss(y, rows_of(targets(12, seed), ranks->rank(), n).to(y.device()));
                }));
  });
  results.check_equal();
  return results;
}

double distance(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    sum += ((a[k] - b[k]) * (a[k] - b[k])).sum().item<double>();
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("distributed: D12 hooks: compression and PowerSGD train like the plain mean",
          "[distributed]") {
  const std::vector<Tensor> want = mlp_alone(6);
  struct Way {
    const char* name;
    std::function<parallel::DistributedHook()> hook;
    double tolerance;
  };
  const Way ways[] = {{"fp16", [] { return parallel::fp16_compress; }, 2e-3},
                      {"bf16", [] { return parallel::bf16_compress; }, 2e-2},
                      {"PowerSGD before it starts",
                       [] { return parallel::PowerSgd({.start_powerSGD_iter = 100}); }, 1e-6},
                      {"PowerSGD of full rank",
                       [] {
                         return parallel::PowerSgd({.matrix_approximation_rank = 40,
                                                    .start_powerSGD_iter = 2,
                                                    .min_compression_rate = 1e-9});
                       },
                       1e-5}};
  for (const Way& way : ways) {
    INFO(way.name);
    const Results results = mlp_on_ranks(
        3, 6, [&] { return DistributedOptions{.bucket_bytes = 1024, .hook = way.hook()}; });
    const double off = distance(results[0], want);
    INFO("off by " << off);
    CHECK(off < way.tolerance);
  }
}

TEST_CASE("distributed: D12 PowerSGD: error feedback makes up for what a step loses",
          "[distributed]") {
  // A constant gradient of rank 3, sent with rank 1: with error feedback the sum of the reduced
  // gradients approaches the sum of the true ones.
  const auto missing = [](bool feedback) {
    double off = 0;
    on_world(2, [&](const Ranks& ranks) {
      const parallel::PowerSgd hook({.start_powerSGD_iter = 2, .use_error_feedback = feedback});
      const Tensor a = random_tensor({16, 3}, DType::float32, ranks->device(), 1),
                   b = random_tensor({3, 12}, DType::float32, ranks->device(), 2),
                   bias = random_tensor({7}, DType::float32, ranks->device(), 3);
      const double own = ranks->rank() == 0 ? 0.5 : 1.5;  // the mean is 1
      const Tensor truth = matmul(a, b), total = truth * 0;
      constexpr int kSteps = 60;
      for (int step = 0; step < kSteps; ++step) {
        const Tensor buffer = cat({(truth * own).flatten(), bias * own}).contiguous();
        const parallel::GradientBucket bucket{
            0,
            true,
            buffer,
            {buffer.narrow(0, 0, 192).reshape({16, 12}), buffer.narrow(0, 192, 7)}};
        const parallel::HookResult result = hook(*ranks, bucket);
        result.work.wait();
        const Tensor got = result.result ? result.result() : buffer;
        if (result.accepted) result.accepted();
        total.add_(got.narrow(0, 0, 192).reshape({16, 12}));
        const Tensor plain = got.narrow(0, 192, 7) - bias;
        expect((plain * plain).sum().item<double>() < 1e-10, "the vector as it is");
      }
      const Tensor d = total / kSteps - truth;
      if (ranks->rank() == 0)
        off = std::sqrt((d * d).sum().item<double>() / (truth * truth).sum().item<double>());
    });
    return off;
  };
  CHECK(missing(true) < 0.1);
  CHECK(missing(false) > 0.3);
}

TEST_CASE("distributed: D12 a hook that does nothing leaves the gradients of each rank",
          "[distributed]") {
  Results results(2);
  on_world(2, [&](const Ranks& ranks) {
    DistributedDataParallel model(
        placed_on(seeded<Mlp>(), ranks->device()), ranks,
        {.hook = [](parallel::ProcessCommunicator&, const parallel::GradientBucket&) {
          return parallel::HookResult{};
        }});
    const Tensor x = rows_of(inputs(8, 5), ranks->rank(), 2).to(ranks->device());
    model(x).mean().backward();
    Mlp alone = placed_on(seeded<Mlp>(), ranks->device());
    alone(x).mean().backward();
    const std::vector<Tensor> got = parameters(model), want = parameters(alone);
    for (std::size_t k = 0; k < got.size(); ++k) same(got[k].grad(), want[k].grad());
  });
  using Result = std::function<Tensor(const parallel::GradientBucket&)>;
  const std::pair<Result, const char*> wrong[] = {
      {[](const auto&) { return Tensor(); }, "got an undefined tensor"},
      {[](const auto& bucket) { return bucket.buffer.narrow(0, 0, 7); }, "got one of shape [7]"}};
  for (const auto& [result, text] : wrong)
    on_world(2, [&, &make = result, &want = text](const Ranks& ranks) {
      const auto hook = [&](parallel::ProcessCommunicator&, const parallel::GradientBucket& b) {
        parallel::HookResult made;
        made.result = [&make, b] { return make(b); };
        return made;
      };
      DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks,
                                    {.hook = hook});
      const std::string got =
          text_of([&] { model(inputs(4, 5).to(ranks->device())).mean().backward(); });
      expect(matches(got, str("*the hook of bucket 0: expected a result of * elements, ", want)),
             str(want, ", got ", got));
    });
  CHECK_THROWS_TEXT(ArgumentError, "PowerSgd: expected matrix_approximation_rank >= 1, got 0",
                    parallel::PowerSgd({.matrix_approximation_rank = 0}));
}

TEST_CASE("distributed: D13 buffers are rank 0's, and graphs before stay valid", "[distributed]") {
  struct Counts : nn::Module {
    nn::Linear fc{6, 4};
    nn::Buffer scale{ones({4})};
    Tensor operator()(const Tensor& x) const { return fc(x) * scale; }
    BRAID_FIELDS(fc, scale)
  };
  for (const bool broadcast : {true, false}) {
    on_world(2, [&](const Ranks& ranks) {
      DistributedDataParallel model(placed_on(seeded<Counts>(), ranks->device()), ranks,
                                    {.broadcast_buffers = broadcast});
      const Tensor x = inputs(4, 5).to(ranks->device());
      model->scale.fill_(ranks->rank() + 2.0);
      // two forwards before one backward: the first one has saved the buffer
      const Tensor first = model(x), second = model(x);
      expect(model->scale.max().item<double>() == (broadcast || ranks->rank() == 0 ? 2 : 3),
             "the buffer of rank 0");
      (first.mean() + second.mean()).backward();
      const auto evaluate = [&](bool sends) {
        const NoGrad guard;
        eval(model);
        model->scale.fill_(ranks->rank() + 2.0);
        const double seen = (model(x) / model->fc(x)).max().item<double>(),
                     want = sends && broadcast ? 2 : ranks->rank() + 2.0;
        expect(std::abs(seen - want) < 1e-5, str("a forward with ", want, ", got ", seen));
        train(model);
      };
      evaluate(true);   // the ranks evaluate alike
      evaluate(false);  // and have not trained since
      const auto local = [&] {
        const auto guard = model.no_sync();
        model->scale.fill_(ranks->rank() + 2.0);
        (void)model(x);
        expect(model->scale.max().item<double>() == ranks->rank() + 2.0, "the rank's own buffer");
      };
      local();
      evaluate(false);
      (void)model(x);
      local();
      evaluate(true);
      (void)model(x);
      // ranks without data would not take part
      if (ranks->rank() == 0) {
        const auto join = model.join();
        model(x).mean().backward();
        evaluate(false);
      } else {
        (void)model.join();
      }
      evaluate(false);  // all have those of the last rank
    });
  }
}

TEST_CASE("distributed: D14 join: ranks with different numbers of batches", "[distributed]") {
  constexpr int kRanks = 3;
  const auto batches = [](int rank) { return 2 + 2 * rank; };  // 2, 4, 6
  struct Hooked {
    const char* name;
    parallel::DistributedHook hook;
    bool finds;
    double tolerance;
  };
  const Hooked rows[] = {{"no hook", {}, false, 1e-6},
                         {"no hook", {}, true, 1e-6},
                         {"all_reduce_hook", parallel::all_reduce_hook, true, 1e-6},
                         {"fp16_compress", parallel::fp16_compress, false, 2e-4},
                         {"bf16_compress", &parallel::bf16_compress, true, 2e-3}};
  for (const bool initial : {true, false})
    for (const Hooked& row : rows) {
      INFO(row.name << ", divided by " << (initial ? "all" : "the active ones"));
      Results results(kRanks);
      on_world(kRanks, [&](const Ranks& ranks) {
        const int rank = ranks->rank();
        DistributedDataParallel model(
            placed_on(seeded<Mlp>(), ranks->device()), ranks,
            {.bucket_bytes = 1024, .find_unused_parameters = row.finds, .hook = row.hook});
        optim::SGD optimizer(parameters(model), {.lr = 0.1});
        for (int epoch = 0; epoch < 2; ++epoch) {
          const auto join = model.join({.divide_by_initial_world_size = initial});
          for (int i = 0; i < batches(rank); ++i) {
            optimizer.zero_grad();
            const auto seed = static_cast<std::uint64_t>(10 * i + rank);
            model(inputs(4, seed).to(ranks->device())).mean().backward();
            optimizer.step();
          }
        }
        results.set(rank, values_of(model));
      });
      results.check_equal();
      Mlp alone = placed_on(seeded<Mlp>(), device(0));
      optim::SGD optimizer(parameters(alone), {.lr = 0.1});
      for (int epoch = 0; epoch < 2; ++epoch)
        for (int i = 0; i < batches(kRanks - 1); ++i) {
          optimizer.zero_grad();
          int active = 0;
          for (int rank = 0; rank < kRanks; ++rank) active += i < batches(rank);
          for (int rank = 0; rank < kRanks; ++rank)
            if (i < batches(rank)) {
              const auto seed = static_cast<std::uint64_t>(10 * i + rank);
              (alone(inputs(4, seed)).mean() / static_cast<double>(initial ? kRanks : active))
                  .backward();
            }
          optimizer.step();
        }
      check_close(results[0], values_of(alone), {row.tolerance, row.tolerance});
    }
}

TEST_CASE("distributed: D14 join: throws on early termination, and what it refuses",
          "[distributed]") {
  std::vector<std::exception_ptr> errors;
  on_world(
      2,
      [&](const Ranks& ranks) {
        DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks);
        const auto join = model.join({.throw_on_early_termination = true});
        for (int i = 0; i < 2 + ranks->rank(); ++i)
          model(inputs(4, 1).to(ranks->device())).mean().backward();
      },
      1, &errors);
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK(matches(exception_message(error),
                  "*join: expected data on all ranks, got no more on rank 0*"));
  }
  // one batch more on rank 1, and SyncBatchNorm: rank 0 cannot follow
  const auto one = parallel::detail::make_thread_communicators({device(0)})[0];
  struct Noop {
    parallel::HookResult operator()(parallel::ProcessCommunicator&,
                                    const parallel::GradientBucket&) const {
      return {};
    }
  };
  const std::pair<const char*, parallel::DistributedHook> refused[] = {
      {"got PowerSgd: a rank without data", parallel::PowerSgd()},
      {"got the program's *Noop: a rank", Noop{}},
      {"got a function of the program",
       +[](parallel::ProcessCommunicator& c, const parallel::GradientBucket& bucket) {
         return parallel::fp16_compress(c, bucket);
       }}};
  for (const auto& [text, hook] : refused) {
    const DistributedDataParallel hooked(Mlp{}, one, {.hook = hook});
    CHECK_THROWS_TEXT(ArgumentError,
                      "*join: expected no hook, or one of all_reduce_hook, fp16_compress and "
                      "bf16_compress, *" +
                          std::string(text),
                      (void)hooked.join());
  }
  const DistributedDataParallel fixed(Mlp{}, one, {.virtual_replicas = 4});
  CHECK_THROWS_TEXT(ArgumentError, "*join: expected no virtual_replicas, got 4*",
                    (void)fixed.join());
  CHECK_THROWS_TEXT(ArgumentError, "*no_sync: expected no virtual_replicas, got 4*",
                    (void)fixed.no_sync());
  on_world(
      2,
      [&](const Ranks& ranks) {
        using Norm = nn::Sequential<nn::Linear, nn::SyncBatchNorm>;
        DistributedDataParallel model(
            placed_on(Norm{nn::Linear(6, 4), nn::SyncBatchNorm(4)}, ranks->device()), ranks);
        const auto join = model.join();
        model(inputs(4, 1).to(ranks->device())).mean().backward();
      },
      1, &errors);
  for (const auto& error : errors)
    CHECK(matches(exception_message(error),
                  "*no layer that computes over all ranks*inside of join*"));
}

TEST_CASE("distributed: D15 SyncBatchNorm over ranks, with different numbers of rows",
          "[distributed]") {
  struct Normed : nn::Module {
    nn::Linear fc1{6, 5};
    nn::SyncBatchNorm norm{5};
    nn::Linear fc2{5, 4};
    Tensor operator()(const Tensor& x) const { return fc2(tanh(norm(fc1(x)))); }
    BRAID_FIELDS(fc1, norm, fc2)
  };
  const std::int64_t counts[] = {3, 5, 4};
  const auto part = [&](const Tensor& x, int rank) {
    std::int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += counts[r];
    return x.narrow(0, first, counts[rank]);
  };
  const auto state = [](const Normed& m) {
    std::vector<Tensor> list = values_of(m);
    for (const Tensor& t : buffers(m)) list.push_back(t.to(device(0)).clone());
    return list;
  };
  for (const int each : {1, 2}) {
    if (3 * each > device_count()) continue;
    INFO(each << " devices in each rank");
    Results results(3);
    on_world(
        3,
        [&](const Ranks& ranks) {
          std::vector<Device> on;
          for (int i = 0; i < each; ++i) on.push_back(device(ranks->rank() * each + i));
          DistributedDataParallel model(placed_on(seeded<Normed>(), ranks->device()), ranks,
                                        {.device_ids = on, .broadcast_buffers = false});
          (void)trained(model, 3, [&](int step) {
            const Tensor y =
                model(part(inputs(12, static_cast<std::uint64_t>(step)), ranks->rank()));
            // the sum, so that every row has the same weight
            return (y * y).sum() * 0.1;
          });
          results.set(ranks->rank(), state(model.module));
        },
        each);
    results.check_equal();
    Normed alone = placed_on(seeded<Normed>(), device(0));
    (void)trained(alone, 3, [&](int step) {
      const Tensor y = alone(inputs(12, static_cast<std::uint64_t>(step)));
      return (y * y).sum() * (0.1 / 3);
    });
    check_close(results[0], state(alone), {1e-5, 1e-5});
  }
}

TEST_CASE("distributed: D15 SyncBatchNorm: one order of calls where devices run side by side",
          "[distributed]") {
  struct Deep : nn::Module {
    nn::Linear fc1{6, 16};
    nn::SyncBatchNorm norm1{16};
    nn::Linear fc2{16, 16};
    nn::SyncBatchNorm norm2{16};
    nn::Linear fc3{16, 4};
    Tensor operator()(const Tensor& x) const { return fc3(relu(norm2(fc2(relu(norm1(fc1(x))))))); }
    BRAID_FIELDS(fc1, norm1, fc2, norm2, fc3)
  };
  if (device_count() < 3) return;
  Results results(2);
  on_world(2, [&](const Ranks& ranks) {
    std::vector<Device> on{ranks->device()};
    if (ranks->rank() == 1) on.push_back(device(2));
    DistributedDataParallel model(placed_on(seeded<Deep>(), ranks->device()), ranks,
                                  {.device_ids = on, .bucket_bytes = 256});
    results.set(ranks->rank(), trained(model, 8, [&](int step) {
                  // a last batch of one row uses one device
                  const std::int64_t rows = step % 3 == 2 ? 2 - ranks->rank() : 8;
                  const Tensor y = model(inputs(rows, static_cast<std::uint64_t>(step)));
                  return (y * y).mean();
                }));
  });
  results.check_equal();
}

TEST_CASE("distributed: D16 ZeRO-1: each rank steps its share", "[distributed]") {
  const std::vector<Tensor> sized{zeros({4}), zeros({9}), zeros({6}), zeros({1}), zeros({5})};
  CHECK(parallel::detail::partition_parameters(sized, 2) == std::vector<int>{0, 0, 1, 1, 1});
  Mlp alone = placed_on(seeded<Mlp>(), device(0));
  optim::AdamW whole(parameters(alone), {.lr = 0.01});
  for (std::uint64_t step = 0; step < 4; ++step) {
    whole.zero_grad();
    alone(inputs(12, step)).mean().backward();
    whole.step();
  }
  for (const int n : {1, 3}) {
    Results results(n);
    on_world(n, [&](const Ranks& ranks) {
      DistributedDataParallel model(placed_on(seeded<Mlp>(), ranks->device()), ranks);
      parallel::ZeroRedundancyOptimizer optimizer(
          parameters(model), ranks,
          [](const std::vector<Tensor>& p) { return optim::AdamW(p, {.lr = 0.01}); });
      for (std::uint64_t step = 0; step < 4; ++step) {
        optimizer.zero_grad();
        model(rows_of(inputs(12, step), ranks->rank(), n).to(ranks->device())).mean().backward();
        optimizer.step();
      }
      std::size_t mine = 0;
      for (const int owner : optimizer.owners()) mine += owner == ranks->rank();
      expect(optimizer.local()->parameters().size() == mine, "the state of the share only");
      results.set(ranks->rank(), values_of(model));
    });
    results.check_equal();
    check_close(results[0], values_of(alone), {1e-5, 1e-6});
  }
  // a step that cannot be prepared on one rank is taken on none
  on_world(2, [&](const Ranks& ranks) {
    const std::vector<Tensor> p{ones({3}, {.device = ranks->device(), .requires_grad = true}),
                                ones({2}, {.device = ranks->device(), .requires_grad = true})};
    parallel::ZeroRedundancyOptimizer optimizer(
        p, ranks, [](const std::vector<Tensor>& list) { return optim::SGD(list, {.lr = 1}); });
    p[0].set_grad(ones({3}, {.device = ranks->device()}));
    p[1].set_grad(ones({2}, {.device = ranks->device()}));
    if (ranks->rank() == 1) p[1].id()->grad = ones({4}, {.device = ranks->device()}).impl();
    const std::string text = text_of([&] { optimizer.step(); });
    expect(text.find("expected the gradient of parameter 0 to have its shape [2]") !=
               std::string::npos,
           "the reason of rank 1, got " + text);
    for (const Tensor& t : p) expect(t.max().item<double>() == 1, "no step");
  });
}

}  // namespace braid::test
