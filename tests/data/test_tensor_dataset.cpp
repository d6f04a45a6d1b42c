#include <numeric>

#include "items.hpp"
#include "nn/refused.hpp"

using namespace braid;
using namespace braid::test;

namespace {

Tensor counted(const Shape& shape) {
  Tensor t = make_tensor(shape, DType::float32, Device());
  std::iota(t.data<float>(), t.data<float>() + t.numel(), 0.0f);
  return t;
}
data::Labelled digits(std::int64_t n) {
  return {counted({n, 2, 3}), arange(n, {.dtype = DType::int64})};
}

}  // namespace

TEST_CASE("tensor dataset: a batch is what its items, collated, are", "[data]") {
  const data::TensorDataset dataset(digits(40));
  CHECK(dataset.size() == 40);
  CHECK(dataset.get(7).image.shape() == Shape{2, 3});
  CHECK(dataset.get(7).label.dim() == 0);
  for (const Ids& indices : {Ids{3}, Ids{39, 0, 39, 17}, Ids{}, upto(21)}) {
    const data::Labelled batch = dataset.get_batch(indices);
    CHECK(batch.image.shape() == Shape{static_cast<std::int64_t>(indices.size()), 2, 3});
    for (std::size_t k = 0; k < indices.size(); ++k) {
      const auto i = static_cast<std::int64_t>(k);
      CHECK(batch.image.select(0, i).to_vector<float>() ==
            dataset.get(indices[k]).image.to_vector<float>());
      CHECK(batch.label.to_vector<std::int64_t>()[k] == indices[k]);
    }
  }
}

TEST_CASE("tensor dataset: any dtype and layout; no elements; one tensor; numbers are copied",
          "[data]") {
  const Tensor base = counted({3, 5});
  const data::TensorDataset turned(base.transpose(0, 1));  // rows of `turned` are columns of `base`
  const std::int64_t indices[] = {4, 0};
  CHECK(turned.get_batch(indices).to_vector<float>() == std::vector<float>{4, 9, 14, 0, 5, 10});
  CHECK(turned.get(1).to_vector<float>() == std::vector<float>{1, 6, 11});
  const data::TensorDataset bytes(arange(5, {.dtype = DType::uint8}));
  CHECK(bytes.get_batch(indices).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{4, 0});
  const data::TensorDataset empty(zeros({5, 0, 3}));
  CHECK(empty.get_batch(indices).shape() == Shape{2, 0, 3});
  const Tensor batch = turned.get_batch(indices);
  batch.fill_(7);
  CHECK(base.to_vector<float>()[0] == 0);
  const data::TensorDataset trained(zeros({5}, {.requires_grad = true}));
  CHECK_FALSE(trained.get_batch(indices).requires_grad());
}

TEST_CASE("tensor dataset: errors", "[data][errors]") {
  refuses<ShapeError>("TensorDataset: expected ")({
      {"'label' to have 3 rows as the first tensor, got 4",
       [] { data::TensorDataset(data::Labelled{zeros({3, 2}), zeros({4})}); }},
      {"the tensor to have rows, got a 0-dim tensor", [] { data::TensorDataset(zeros({})); }},
      {"'image' to have rows, got an undefined one", [] { data::TensorDataset(data::Labelled{}); }},
  });
  CHECK_THROWS_TEXT(ArgumentError, "TensorDataset: expected at least one tensor, got none",
                    data::TensorDataset(std::vector<Tensor>{}));
  const data::TensorDataset dataset(digits(4));
  const std::int64_t beyond[] = {0, 4}, before[] = {-1};
  CHECK_THROWS_AS(dataset.get_batch(beyond), IndexError);
  CHECK_THROWS_AS(dataset.get_batch(before), IndexError);
  CHECK_THROWS_AS(dataset.get(4), IndexError);
}

TEST_CASE("loader: the state says where it is, and takes it there", "[data][loader]") {
  data::DataLoader loader(Integers{10}, {.batch_size = 3, .shuffle = true, .seed = 4});
  std::vector<Ids> all;
  std::vector<StateDict> states{loader.state()};
  for (int epoch = 0; epoch < 2; ++epoch)
    for (auto& batch : loader) {
      all.push_back(ids(batch));
      states.push_back(loader.state());
      CHECK(loader.steps() == static_cast<std::int64_t>(all.size()));
    }
  for (std::size_t k = 0; k < states.size(); ++k) {
    for (const int workers : {0, 2}) {
      data::DataLoader again(Integers{10},
                             {.batch_size = 3, .shuffle = true, .workers = workers, .seed = 99});
      again.load_state({states[k].data(), states[k].size()});
      CHECK(again.steps() == static_cast<std::int64_t>(k));
      std::vector<Ids> rest;
      while (again.epoch() < 2)
        for (auto& batch : again) rest.push_back(ids(batch));
      CHECK(rest == std::vector<Ids>(all.begin() + static_cast<std::ptrdiff_t>(k), all.end()));
    }
  }
  auto copy = loader;  // has a separate position
  const std::int64_t before = loader.steps();
  auto at = copy.begin();
  CHECK(copy.steps() == before + 1);
  CHECK(loader.steps() == before);
}

TEST_CASE("loader: the state of ranks fits another number of ranks", "[data][loader]") {
  const data::DistributedSamplerOptions kinds[] = {
      {}, {.shuffle = true}, {.shuffle = true, .consecutive = true}};
  for (const data::DistributedSamplerOptions& kind : kinds) {
    INFO("shuffle " << kind.shuffle << ", consecutive " << kind.consecutive);
    const auto rank = [&](int r, int ranks, std::int64_t rows) {
      return data::DataLoader(Integers{24}, {.batch_size = rows / ranks,
                                             .sampler = data::DistributedSampler(r, ranks, kind)});
    };
    auto saved = rank(1, 3, 6), whole = rank(0, 1, 6);
    auto at = saved.begin();
    ++at;
    const StateDict state = saved.state();
    std::vector<Ids> batches;
    for (const auto& batch : whole) batches.push_back(sorted(ids(batch)));
    for (const int ranks : {1, 2, 3, 6}) {
      Ids next;
      for (int r = 0; r < ranks; ++r) {
        auto loader = rank(r, ranks, 6);
        loader.load_state({state.data(), state.size()});
        CHECK(loader.steps() == 2);
        const Ids batch = ids(*loader.begin());
        next.insert(next.end(), batch.begin(), batch.end());
      }
      CHECK(sorted(next) == batches[2]);
    }
    auto other = rank(0, 2, 8);
    CHECK_THROWS_TEXT(ArgumentError,
                      "DataLoader: load_state: expected batches of 8 (2 ranks of 4), as this "
                      "loader makes, got a state of batches of 6",
                      other.load_state({state.data(), state.size()}));
  }
}

TEST_CASE("loader: a state that does not fit is an error, and changes nothing",
          "[data][loader][errors]") {
  data::DataLoader loader(Integers{10}, {.batch_size = 3, .shuffle = true, .seed = 4});
  auto at = loader.begin();
  const StateDict good = loader.state();
  data::DataLoader other(Integers{10}, {.batch_size = 4}), larger(Integers{11}, {.batch_size = 3});
  const auto load = [&](auto& to, const StateDict& dict) {
    to.load_state({dict.data(), dict.size()});
  };
  const auto changed = [&](const std::string& name, const Tensor& value) {
    StateDict dict;
    for (const auto& [n, t] : good) dict.set(n, t);
    if (value.defined()) dict.set(name, value);
    else dict.erase(name);
    return dict;
  };
  const auto number = [](std::int64_t n) { return tensor(std::vector<std::int64_t>{n}); };
  const auto wrong = [&](const std::string& name, const Tensor& value) {
    load(loader, changed(name, value));
  };
  refuses<ArgumentError>("DataLoader: load_state: expected ")({
      {"batches of 4, as this loader makes, got a state of batches of 3",
       [&] { load(other, good); }},
      {"a dataset of 11 items, got a state of one of 10", [&] { load(larger, good); }},
      {"an epoch in [0, *], got -1", [&] { wrong("epoch", number(-1)); }},
      {"a batch below 4, got 4", [&] { wrong("batch", number(4)); }},
      {"a batch below 4, got -2", [&] { wrong("batch", number(-2)); }},
      {"seed, got none", [&] { wrong("seed", {}); }},
      {"epoch, batch, seed, batch_size and dataset_size, got 'x'", [&] { wrong("x", number(1)); }},
      {"epoch to be one int64, got another tensor", [&] { wrong("epoch", zeros({1})); }},
  });
  CHECK(loader.steps() == 1);
  CHECK(loader.epoch() == 1);
  auto next = loader.begin();
  // at the beginning of an epoch another batch size is allowed
  load(other, loader.state().size() == 5 ? changed("batch", number(0)) : good);
  CHECK(other.epoch() == 0);
}
