// The state of ZeroRedundancyOptimizer, in checkpoints and as a dict, with any number of ranks.
#include <braid/parallel/checkpoint.hpp>

#include "distributed.hpp"
#include "support/errors.hpp"
#include "support/temporary.hpp"

namespace braid::test {

namespace {

using parallel::ZeroRedundancyOptimizer;
using List = std::vector<Tensor>;

const auto kAdam = [](const List& p) { return optim::Adam(p, {.lr = 0.02, .amsgrad = true}); };
const auto kMomentum = [](const List& p) { return optim::SGD(p, {.lr = 0.1, .momentum = 0.9}); };
const auto kPlain = [](const List& p) { return optim::SGD(p, {.lr = 0.1}); };
/// The groups do not have the order of the parameters, and with many ranks one of them is empty.
const auto kGroups = [](const List& p) {
  List weights, biases;
  for (const Tensor& t : p) (t.dim() == 2 ? weights : biases).push_back(t);
  return optim::AdamW(std::vector<optim::AdamW::Group>{{biases, {.lr = 0.01, .weight_decay = 0}},
                                                       {weights, {.lr = 0.03}}});
};

enum class Kind { divided, whole };
constexpr int kSteps = 5, kBreak = 3;

/// `all` and an optimizer of it, which is divided or whole.
template <Kind kind, class F> auto make_optimizer(const List& all, const Ranks& ranks, const F& f) {
  if constexpr (kind == Kind::divided) return ZeroRedundancyOptimizer(all, ranks, f);
  else return f(all);
}
template <class O> optim::Optimizer& rates_of(O& optimizer) {
  if constexpr (std::derived_from<O, optim::Optimizer>) return optimizer;
  else return optimizer.rates();
}
template <class O> StateDict whole_state(const O& optimizer) {
  if constexpr (std::derived_from<O, optim::Optimizer>) return state_dict(optimizer);
  else return optimizer.consolidate_state_dict();
}

/// Trains from step `begin`, after loading the checkpoint if that is not 0, to `end`. Saves one
/// unless that is the last step. Returns rank 0's parameters, the state of the optimizer and its
/// learning rates. `other` gets its first gradient in step 2, and one parameter never gets any.
template <Kind kind, class F>
List train(int n, const F& make, int begin, int end, const TemporaryFolder& folder) {
  Results results(n);
  List state;
  on_world(n, [&](const Ranks& ranks) {
    DistributedDataParallel model(placed_on(seeded<Branches>(), ranks->device()), ranks,
                                  {.find_unused_parameters = true, .virtual_replicas = 12});
    List all = parameters(model);
    all.insert(all.begin() + 1, ones({7}, {.device = ranks->device(), .requires_grad = true}));
    auto optimizer = make_optimizer<kind>(all, ranks, make);
    optim::ExponentialSchedule schedule(rates_of(optimizer), {.gamma = 0.8});
    training::Checkpoint checkpoint(
        {.folder = folder.path(), .ranks = parallel::checkpoint_ranks(ranks)}, model, optimizer,
        schedule);
    if (begin > 0) expect(checkpoint.load_latest(), "a checkpoint");
    for (int step = begin; step < end; ++step) {
      const auto seed = static_cast<std::uint64_t>(step);
      optimizer.zero_grad();
      const Tensor x = rows_of(inputs(12, seed), ranks->rank(), n).to(ranks->device()),
                   y = rows_of(targets(12, seed), ranks->rank(), n).to(ranks->device());
      mse_loss(model(x, step == 2 || step == 4), y).backward();
      optimizer.step();
      schedule.step();
    }
    if (end < kSteps) checkpoint.save();
    const StateDict dict = whole_state(optimizer);
    expect((ranks->rank() == 0) != dict.empty(), "the state on rank 0 only");
    if (ranks->rank() == 0)
      for (const auto& [name, t] : dict) state.push_back(t.to(device(0)).clone());
    List values = values_of(model);
    values.push_back(all[1].detach().to(device(0)).clone());
    for (std::size_t g = 0; g < optimizer.groups(); ++g)
      values.push_back(full({}, optimizer.lr(g), {.dtype = DType::float64}));
    results.set(ranks->rank(), values);
  });
  results.check_equal();
  List list = results[0];
  list.insert(list.end(), state.begin(), state.end());
  return list;
}

std::string file_of(const TemporaryFolder& folder, int step) {
  return read_file(folder / str("step-0000000", step) + "/optimizer.safetensors");
}

template <class F> void check_resumes(const char* name, const F& make) {
  INFO(name);
  const TemporaryFolder divided, whole;
  const List want = train<Kind::whole>(1, make, 0, kSteps, whole),
             middle = train<Kind::whole>(1, make, 0, kBreak, whole);
  check_same(train<Kind::divided>(3, make, 0, kBreak, divided), middle);
  CHECK(file_of(divided, 1) == file_of(whole, 1));
  for (const int n : {1, 2, 4, 12}) {  // 12 are more than there are parameters
    INFO(n << " ranks");
    check_same(train<Kind::divided>(n, make, kBreak, kSteps, divided), want);
  }
  check_same(train<Kind::whole>(1, make, kBreak, kSteps, divided), want);
  check_same(train<Kind::divided>(2, make, kBreak, kSteps, whole), want);
  // load and save without a step, so that the state passes from 3 ranks through 12 to 2
  for (const int n : {12, 2}) {
    INFO(n << " ranks save what they load");
    check_same(train<Kind::divided>(n, make, kBreak, kBreak, divided), middle);
  }
  CHECK(file_of(divided, 3) == file_of(whole, 1));
}

/// A divided optimizer of parameters with these sizes, after a step with gradients of ones.
template <class F>
ZeroRedundancyOptimizer<std::invoke_result_t<F, const List&>> stepped(
    const Ranks& ranks, const F& make, const std::vector<std::int64_t>& sizes = {3, 2, 4}) {
  List all;
  for (const std::int64_t n : sizes) {
    all.push_back(ones({n}, {.device = ranks->device(), .requires_grad = true}));
    all.back().set_grad(ones({n}, {.device = ranks->device()}));
  }
  ZeroRedundancyOptimizer optimizer(all, ranks, make);
  optimizer.step();
  return optimizer;
}

/// Runs f on `n` ranks and returns what each threw: the text, or nothing.
std::vector<std::string> texts_of(int n, const std::function<void(const Ranks&)>& f) {
  std::vector<std::exception_ptr> errors;
  on_world(n, f, 1, &errors);
  std::vector<std::string> texts;
  for (const std::exception_ptr& e : errors)
    texts.push_back(e ? exception_type(e) + ": " + exception_message(e) : "");
  return texts;
}
void check_all(const std::vector<std::string>& texts, const std::string& pattern) {
  for (const std::string& text : texts) {
    INFO(text);
    CHECK(matches(text, pattern));
  }
}

}  // namespace

TEST_CASE("distributed: D16 ZeRO-1: a run goes on with another number of ranks, to the same bits",
          "[distributed][checkpoint]") {
  check_resumes("Adam", kAdam);
  check_resumes("SGD with momentum", kMomentum);
  check_resumes("SGD", kPlain);
  check_resumes("groups", kGroups);
}

TEST_CASE("distributed: D16 GradScaler makes or leaves out the step of all ranks",
          "[distributed][amp]") {
  on_world(3, [](const Ranks& ranks) {
    List divided, whole;
    for (const std::int64_t n : {3, 2, 4})
      for (List* const list : {&divided, &whole})
        list->push_back(ones({n}, {.device = ranks->device(), .requires_grad = true}));
    ZeroRedundancyOptimizer optimizer(divided, ranks, kMomentum);
    optim::SGD plain = kMomentum(whole);
    optim::GradScaler scaler({.init_scale = 4}), other({.init_scale = 4});
    const auto step = [](auto& of, optim::GradScaler& by, const List& list, double value) {
      for (const Tensor& t : list) t.set_grad(full(t.shape(), value, {.device = t.device()}));
      const bool made = by.step(of);
      by.update();
      return made;
    };
    for (const double value : {1.0, std::numeric_limits<double>::infinity(), 2.0}) {
      const bool made = step(optimizer, scaler, divided, value);
      expect(made == std::isfinite(value), "a step with finite gradients");
      expect(step(plain, other, whole, value) == made, "the same without dividing");
      for (std::size_t k = 0; k < whole.size(); ++k) same(divided[k].detach(), whole[k].detach());
    }
    expect(scaler.get_scale() == 2, "a smaller scale");
  });
}

TEST_CASE("distributed: D16 ZeRO-1: states and checkpoints that do not fit are refused",
          "[distributed][checkpoint][errors]") {
  check_all(texts_of(3,
                     [](const Ranks& r) {
                       (void)stepped(r, kAdam).consolidate_state_dict(r->rank() == 1 ? 1 : 0);
                     }),
            "ArgumentError: ZeroRedundancyOptimizer: consolidate_state_dict: expected the same "
            "rank below 3 on all ranks, got 0, 1, 0");
  for (const int to : {-1, 2})
    check_all(
        texts_of(2, [&](const Ranks& r) { (void)stepped(r, kAdam).consolidate_state_dict(to); }),
        str("rank below 2 on all ranks, got ", to, ", ", to));
  on_world(3, [](const Ranks& r) {
    const StateDict dict = stepped(r, kMomentum).consolidate_state_dict(2);
    expect(dict.empty() == (r->rank() != 2), "the state on rank 2 only");
    if (r->rank() == 2) same(dict.at("momentum.2"), ones({4}));
  });

  // every rank says the same, also of what another rank would load
  const auto load = [&](const auto& make, auto change, const std::vector<std::int64_t>& sizes) {
    List p;
    for (const std::int64_t n : sizes) {
      p.push_back(ones({n}, {.requires_grad = true}));
      p.back().set_grad(ones({n}));
    }
    auto saved = make(p);
    saved.step();
    StateDict dict;
    for (const auto& [name, t] : state_dict(saved)) dict.set(name, t.clone());
    change(dict);
    return texts_of(4, [&](const Ranks& r) {
      auto optimizer = stepped(r, kAdam);
      StateDict before;
      if (optimizer.local()) before = state_dict(*optimizer.local());
      const std::string text = text_of([&] { (void)load_state_dict(optimizer, dict); });
      for (const auto& [name, t] : before) same(state_dict(*optimizer.local()).at(name), t);
      if (!text.empty()) throw ArgumentError(text);
    });
  };
  const auto nothing = [](StateDict&) {};
  check_all(load(kAdam, nothing, {3, 2, 4}), "");
  check_all(load(kMomentum, nothing, {3, 2, 4}),
            "expected the state of Adam over 3 parameters, got*exp_avg.0: is missing*exp_avg.2: is "
            "missing*momentum.0: was not expected*momentum.2");
  check_all(load(kAdam, nothing, {3, 2}), "steps: expected shape [3], got [2]");
  check_all(load(kAdam, nothing, {3, 2, 5}), "exp_avg.2: expected shape [4], got [5]");
  check_all(load(kAdam, [](StateDict& d) { d.erase("exp_avg_sq.1"); }, {3, 2, 4}),
            "exp_avg_sq.1: is missing, and parameter 1 was updated 1 times");
  check_all(load(kAdam, [](StateDict& d) { d.set("exp_avg.3", ones({2})); }, {3, 2, 4}),
            "exp_avg.3: was not expected");
  check_all(load(kAdam, [](StateDict& d) { d = StateDict(); }, {3, 2, 4}),
            "expected the state of the whole optimizer on every rank, got an empty dict");

  const auto constructed = [](const auto& make) {
    return texts_of(2, [&](const Ranks& r) { (void)stepped(r, make); });
  };
  const Tensor other = ones({2}, {.requires_grad = true});
  check_all(constructed([&](const List&) { return optim::SGD(List{other}, {.lr = 1}); }),
            "expected `make` to return an optimizer of the parameters it gets, got one of another");
  // of its own parameters rank 0 has another one first than among all
  CHECK(matches(
      constructed([](const List& p) { return optim::SGD(List{p.front()}, {.lr = 1}); }).front(),
      "of the parameters it gets, got one of a tensor that the optimizer of all parameters"));
  check_all(constructed([](const List& p) {
              std::vector<optim::SGD::Group> groups;
              for (const Tensor& t : p) groups.push_back({{t}, {.lr = 1}});
              return optim::SGD(groups);
            }),
            "expected `make` to return 3 groups for any list of parameters, got");

  const TemporaryFolder folder;
  check_all(texts_of(2,
                     [&](const Ranks& r) {
                       auto optimizer = stepped(r, kAdam);
                       training::Checkpoint(folder.path(), optimizer).save();
                     }),
            "ArgumentError: Checkpoint: expected the ranks of the optimizer, whose state is "
            "divided: rank * of 2, got rank 0 of 1 (the option ranks =");
  CHECK(folder.names().empty());
  // the optimizer has been loaded when the model turns out not to fit
  check_all(texts_of(3,
                     [&](const Ranks& r) {
                       const training::CheckpointOptions options{
                           .folder = folder.path(), .ranks = parallel::checkpoint_ranks(r)};
                       auto optimizer = stepped(r, kAdam);
                       nn::Linear small(2, 2), large(3, 2);
                       training::Checkpoint(options, optimizer, small).save();
                       optimizer.set_lr(0.5);
                       optimizer.step();
                       const StateDict before = optimizer.consolidate_state_dict();
                       const std::string text = text_of(
                           [&] { training::Checkpoint(options, optimizer, large).load(1); });
                       expect(optimizer.lr() == 0.5, "the learning rate of before");
                       const StateDict after = optimizer.consolidate_state_dict();
                       for (const auto& [name, t] : before) same(after.at(name), t);
                       throw Error(text);
                     }),
            "model.safetensors to be of what is loaded, got a state that does not fit");
}

TEST_CASE("distributed: D16 ZeRO-1: a rank without memory for the state is an error on all",
          "[distributed][errors]") {
  constexpr std::int64_t kNumbers = 1 << 20;
  const auto texts = texts_of(2, [](const Ranks& r) {
    auto optimizer = stepped(r, kMomentum, {kNumbers, kNumbers});
    r->barrier();
    if (r->rank() == 0) {
      empty_cache(Device());
      set_memory_capacity(Device(), memory_stats(Device()).in_use + kNumbers);
    }
    r->barrier();
    const std::string text = text_of([&] { (void)optimizer.consolidate_state_dict(); });
    r->barrier();
    if (r->rank() == 0) set_memory_capacity(Device(), 0);
    r->barrier();
    const StateDict dict = optimizer.consolidate_state_dict();  // the ranks still agree
    if (r->rank() == 0) same(dict.at("momentum.1"), ones({kNumbers}));
    throw Error(text);
  });
  INFO(texts[0]);
  CHECK(matches(texts[0], "cpu:0: allocate: expected*over its capacity"));
  CHECK(matches(texts[1],
                "consolidate_state_dict: expected memory for the state on rank 0, got a "
                "failure; its error says why"));
}

}  // namespace braid::test
