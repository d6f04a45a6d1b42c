// Next-token pairs: windows of one sequence, and streams that are read in parallel.
#include "items.hpp"
#include "nn/refused.hpp"
#include "support/temporary.hpp"

using namespace braid;
using namespace braid::test;

TEST_CASE("windows: tokens, and those one later", "[data][text]") {
  const data::TokenWindows every(arange(10), 4);
  CHECK(every.size() == 6);
  for (std::int64_t i = 0; i < every.size(); ++i) {
    CHECK(ids(every.get(i).input) == Ids{i, i + 1, i + 2, i + 3});
    CHECK(ids(every.get(i).target) == Ids{i + 1, i + 2, i + 3, i + 4});
  }
  const data::TokenWindows apart(arange(12), 4, 4);
  CHECK(apart.size() == 2);  // the third would need token 12
  CHECK(ids(apart.get(1).input) == Ids{4, 5, 6, 7});
  CHECK(ids(apart.get(1).target) == Ids{5, 6, 7, 8});
  CHECK(data::TokenWindows(arange(13), 4, 4).size() == 3);
  CHECK(data::TokenWindows(arange(5), 4, 100).size() == 1);
  CHECK(data::TokenWindows(arange(2), 1).size() == 1);
}

TEST_CASE("windows: a batch is what its items, collated, are", "[data][text]") {
  const Tensor base = arange(40).reshape({20, 2}).select(1, 1);  // not contiguous
  const data::TokenWindows windows(base, 5, 3);
  const std::vector<std::int64_t> picked{4, 0, 4, 2};
  const data::NextToken batch = windows.get_batch(picked);
  CHECK((batch.input.shape() == Shape{4, 5} && batch.target.shape() == Shape{4, 5} &&
         batch.input.dtype() == DType::int64));
  for (std::size_t k = 0; k < picked.size(); ++k) {
    CHECK(ids(batch.input[static_cast<std::int64_t>(k)]) == ids(windows.get(picked[k]).input));
    CHECK(ids(batch.target[static_cast<std::int64_t>(k)]) == ids(windows.get(picked[k]).target));
  }
  CHECK(windows.get_batch({}).input.shape() == Shape{0, 5});
  data::DataLoader loader(windows, {.batch_size = 2, .shuffle = true});
  std::int64_t rows = 0;
  for (auto& [input, target] : loader) {
    rows += input.size(0);
    CHECK(input.shape() == target.shape());
  }
  CHECK(rows == windows.size());
}

TEST_CASE("streams: columns side by side, window after window", "[data][text]") {
  // abcdefghijkl of the documentation, and two tokens that do not fill a row.
  const data::TokenStreams streams(arange(14), 3, 2);
  CHECK(ids(streams.columns()) == Ids{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  REQUIRE(streams.size() == 2);
  CHECK(streams.get(0).input.shape() == Shape{2, 3});
  CHECK(ids(streams.get(0).input) == Ids{0, 4, 8, 1, 5, 9});
  CHECK(ids(streams.get(0).target) == Ids{1, 5, 9, 2, 6, 10});
  CHECK(ids(streams.get(1).input) == Ids{2, 6, 10});  // the rest
  CHECK(ids(streams.get(1).target) == Ids{3, 7, 11});
}

TEST_CASE("streams: every pair of neighbours comes once, in its stream's order", "[data][text]") {
  for (const std::int64_t count : {2, 3, 7, 24, 35, 36, 37, 100})
    for (const std::int64_t streams : {1, 2, 5})
      for (const std::int64_t length : {1, 2, 3, 35, 1000}) {
        if (count / streams < 2) continue;
        const std::int64_t rows = count / streams;
        std::vector<Ids> inputs(static_cast<std::size_t>(streams)), targets(inputs);
        std::int64_t windows = 0;
        const data::TokenStreams all(arange(count), streams, length);
        for (const auto& [input, target] : all) {
          CHECK((input.shape() == target.shape() && input.size(0) <= length && input.size(0) > 0));
          ++windows;
          CHECK((input.size(0) == length || windows == all.size()));
          for (std::int64_t s = 0; s < streams; ++s) {
            for (const std::int64_t x : ids(input.select(1, s)))
              inputs[static_cast<std::size_t>(s)].push_back(x);
            for (const std::int64_t x : ids(target.select(1, s)))
              targets[static_cast<std::size_t>(s)].push_back(x);
          }
        }
        CHECK(windows == all.size());
        for (std::int64_t s = 0; s < streams; ++s) {
          CHECK(inputs[static_cast<std::size_t>(s)] == ids(arange(s * rows, s * rows + rows - 1)));
          CHECK(targets[static_cast<std::size_t>(s)] == ids(arange(s * rows + 1, s * rows + rows)));
        }
      }
}

TEST_CASE("streams: training::progress takes them as a loader, and counts tokens", "[data][text]") {
  data::TokenStreams streams(arange(24), 2, 5);  // 11 pairs a stream: windows of 5, 5, 1
  std::vector<std::int64_t> seen, epochs;
  for (auto& batch : training::progress(streams, {.epochs = 2, .quiet = true})) {
    seen.push_back(training::detail::rows_of(batch));
    if (batch.is_last_of_epoch()) epochs.push_back(batch.epoch());
  }
  CHECK(seen == Ids{10, 10, 2, 10, 10, 2});
  CHECK(epochs == Ids{0, 1});
  CHECK(training::detail::rows_of(Tensor(zeros({3, 4}))) == 3);  // no samples(): rows
}

TEST_CASE("streams: a run that is resumed goes on at the next window", "[data][text]") {
  const auto make = [] { return data::TokenStreams(arange(24), 2, 5); };  // 3 windows
  const training::Options options{.epochs = 3, .quiet = true};
  nn::Linear model(1, 1);
  std::vector<Ids> all;
  data::TokenStreams whole = make();
  for (auto& batch : training::progress(whole, options)) all.push_back(ids(batch.input));
  REQUIRE(all.size() == 9);
  CHECK((whole.epoch() == 3 && whole.steps() == 9));
  for (std::size_t stop = 1; stop < all.size(); ++stop) {
    INFO("stopped after " << stop);
    const TemporaryFolder folder;
    data::TokenStreams first = make(), second = make();
    training::Checkpoint checkpoint(folder.path(), model, first);
    std::vector<Ids> seen;
    for (auto& batch : training::progress(first, options, checkpoint)) {
      seen.push_back(ids(batch.input));
      if (seen.size() < stop) continue;
      checkpoint.save();
      break;
    }
    training::Checkpoint again(folder.path(), model, second);
    REQUIRE(again.load_latest());
    CHECK(again.last() == static_cast<std::int64_t>(stop));
    second.set_epoch(second.epoch());
    for (auto& batch : training::progress(second, options, again)) {
      CHECK(batch.step() == static_cast<std::int64_t>(seen.size()));
      seen.push_back(ids(batch.input));
    }
    CHECK(seen == all);
  }
}

TEST_CASE("streams: passes over a const one are no epochs; a state that does not fit is refused",
          "[data][text][errors]") {
  data::TokenStreams streams(arange(24), 2, 5);
  auto pass = streams.begin();
  ++pass;
  const StateDict state = streams.state();
  for (const auto& batch : std::as_const(streams)) CHECK(batch.input.defined());
  CHECK((streams.steps() == 2 && streams.epoch() == 1));
  streams.load_state(state);
  CHECK((streams.steps() == 2 && streams.epoch() == 0 && streams.first_batch() == 2));
  CHECK(ids((*streams.begin()).input) == Ids{10, 22});
  data::TokenStreams shorter(arange(24), 2, 4), longer(arange(48), 2, 5);
  const auto with = [&](const char* name, std::int64_t value) {
    return [&streams, state, name, value] {
      StateDict changed = state;
      changed.set(name, tensor(std::vector<std::int64_t>{value}));
      streams.load_state(changed);
    };
  };
  refuses<ArgumentError>("TokenStreams: load_state: expected ")({
      {"length 4 in the middle of an epoch, got 5", [&] { shorter.load_state(state); }},
      {"tokens 24 in the middle of an epoch, got 12", [&] { longer.load_state(state); }},
      {"an epoch in [0, *got -1", with("epoch", -1)},
      {"a batch below 3, got 3", with("batch", 3)},
      {"a batch below 3, got -1", with("batch", -1)},
      {"epoch, batch, length, streams and tokens, got 'seed'", with("seed", 1)},
      {"epoch, got none", [&] { streams.load_state({}); }},
  });
  CHECK_THROWS_TEXT(ArgumentError, "TokenStreams: set_epoch: expected an epoch in [0, *got -2",
                    streams.set_epoch(-2));
  CHECK(streams.epoch() == 1);
}

TEST_CASE("sequences: what cannot be cut is refused", "[data][text][errors]") {
  const auto windows = [](std::int64_t n, std::int64_t length, std::int64_t stride = 1) {
    return data::TokenWindows(arange(n), length, stride);
  };
  const auto streams = [](std::int64_t n, std::int64_t count, std::int64_t length) {
    return data::TokenStreams(arange(n), count, length);
  };
  const std::int64_t most = std::numeric_limits<std::int64_t>::max(), wrong[] = {0, 2};
  refuses<ArgumentError>("Token")({
      {"Windows: expected more tokens than the length of a window, 4, got 4",
       [&] { windows(4, 4); }},
      {"Windows: *a window, 9223372036854775807, got 4", [&] { windows(4, most); }},
      {"Windows: *a window, 1, got 0", [&] { windows(0, 1); }},
      {"Windows: expected length >= 1, got 0", [&] { windows(4, 0); }},
      {"Windows: expected stride >= 1, got -1", [&] { windows(4, 2, -1); }},
      {"Streams: expected at least two tokens for each of 3 streams, got 5 in all",
       [&] { streams(5, 3, 2); }},
      {"Streams: *of 1 streams, got 0 in all", [&] { streams(0, 1, 2); }},
      {"Streams: expected streams >= 1, got 0", [&] { streams(5, 0, 2); }},
      {"Streams: expected length >= 1, got 0", [&] { streams(5, 1, 0); }},
  });
  refuses<ShapeError>("Token")({
      {"Windows: expected tokens in one dimension, got [2, 2]",
       [] { data::TokenWindows(arange(4).reshape({2, 2}), 1); }},
      {"Streams: expected tokens in one dimension, got []",
       [] { data::TokenStreams(arange(5).sum(), 1, 2); }},
  });
  for (const DType dtype : {DType::float32, DType::float16, DType::bool_}) {
    refuses<DTypeError>("Token")({
        {str("Windows: expected tokens of int64, int32 or uint8, got ", dtype),
         [&] { data::TokenWindows(arange(4).to(dtype), 1); }},
        {str("Streams: expected tokens of int64, int32 or uint8, got ", dtype),
         [&] { data::TokenStreams(arange(5).to(dtype), 1, 2); }},
    });
  }
  for (const DType dtype : {DType::int64, DType::int32, DType::uint8})
    CHECK(data::TokenWindows(arange(4).to(dtype), 1).get(0).input.dtype() == dtype);
  refuses<IndexError>("Token")({
      {"Windows: expected an index in [0, 2), got 2", [&] { return windows(4, 2).get(2); }},
      {"Windows: *got -1", [&] { return windows(4, 2).get(-1); }},
      {"Windows: *got 2", [&] { return windows(4, 2).get_batch(wrong); }},
      {"Streams: expected an index in [0, 2), got 2", [&] { return streams(5, 1, 2).get(2); }},
  });
}
