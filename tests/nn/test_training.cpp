// Options, progress and its files, accuracy, summary, stop signals.
#include <algorithm>
#include <bit>
#include <csignal>
#include <cstring>

#include <braid/core/internal/io/crc.hpp>

#include "data/items.hpp"
#include "nn/train_run.hpp"
#include "refused.hpp"
#include "support/temporary.hpp"
#include "training/reporter.hpp"

using namespace braid;
using namespace braid::test;
namespace shown = braid::training::detail;

namespace {

training::Options read(std::vector<const char*> words, const training::Options& defaults = {},
                       const std::vector<training::Option>& own = {}) {
  words.insert(words.begin(), "train");
  return training::options(static_cast<int>(words.size()), words.data(), defaults, own);
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += static_cast<char>(value >> (8 * i) & 0xff);
  return s;
}

/// Returns the masked CRC-32C of `bytes`, computed bit by bit.
std::string checksum(const std::string& bytes) {
  std::uint32_t r = 0xffffffffu;
  for (const char c : bytes) {
    r ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1u) != 0 ? 0x82f63b78u : 0u);
  }
  r = ~r;
  return little_endian(((r >> 15) | (r << 17)) + 0xa282ead8u, 4);
}

/// Returns a record of TensorBoard's file format: an event with a wall time, a step and one field.
std::string record(const std::string& wall_time, int step, const std::string& field) {
  const std::string event = '\x09' + wall_time + '\x10' + static_cast<char>(step) + field,
                    size = little_endian(event.size(), 8);
  return size + checksum(size) + event + checksum(event);
}
/// Returns a field of the tag `key` that holds `bytes`.
std::string bytes_field(char key, const std::string& bytes) {
  return key + std::string(1, static_cast<char>(bytes.size())) + bytes;
}

/// A terminal in memory, with a clock that the test advances.
struct FakeTerminal {
  std::string text;
  double time = 100;
  shown::Terminal make(bool is_terminal, std::size_t columns = 200) {
    return {.write = [this](std::string_view t) { text += t; },
            .is_terminal = is_terminal,
            .columns = columns,
            .seconds = [this] { return time; },
            .clock = [this] { return 1e9 + time; }};
  }
};

std::size_t count(const std::string& text, std::string_view piece) {
  std::size_t n = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1))
    ++n;
  return n;
}

}  // namespace

TEST_CASE("options: read in every form", "[training][options]") {
  const training::Options none = read({});
  CHECK((none.epochs == 3 && none.batch == 64 && none.lr == 1e-3 && none.seed == 0 &&
         !none.resume && none.checkpoint.empty()));
  const training::Options o =
      read({"--epochs", "7", "--lr=2.5e-2", "--checkpoint", "runs/x y", "--resume",
            "--seed=18446744073709551615", "--batch", "1", "--data=", "--csv", "a.csv", "--quiet"});
  CHECK((o.epochs == 7 && o.lr == 0.025 && o.checkpoint == "runs/x y" && o.resume &&
         o.seed == ~std::uint64_t{0} && o.batch == 1 && o.csv == "a.csv" && o.quiet));
  CHECK(read({"--epochs", "0"}, {.batch = 5}).batch == 5);
}

TEST_CASE("options: what is wrong is said", "[training][options][errors]") {
  const std::pair<std::vector<const char*>, const char*> cases[] = {
      {{"--epochs"}, "--epochs: expected a value, got the end"},
      {{"--epochs", "--resume"}, "--epochs: expected a value, got \"--resume\""},
      {{"--epochs", "x"}, "--epochs: expected a whole number >= 0, got \"x\""},
      {{"--epochs", "-1"}, "expected a whole number >= 0, got \"-1\""},
      {{"--epochs", "1.5"}, "expected a whole number >= 0, got \"1.5\""},
      {{"--epochs=99999999999999999999"}, "expected a whole number >= 0"},
      {{"--batch", "0"}, "--batch: expected a whole number >= 1, got \"0\""},
      {{"--lr", "nan"}, "--lr: expected a number >= 0, got \"nan\""},
      {{"--lr", "inf"}, "--lr: expected a number >= 0"},
      {{"--lr="}, "--lr: expected a number >= 0, got \"\""},
      {{"--seed", "-1"}, "--seed: expected a whole number >= 0"},
      {{"--devices", "0"}, "--devices: expected a whole number >= 1"},
      {{"--resume=yes"}, "--resume: expected no value"},
      {{"--resume"}, "--resume: expected --checkpoint FOLDER with it"},
      {{"--lr", "1", "--lr", "2"}, "--lr: expected it once, got it twice"},
      {{"--unknown"}, "expected an option that --help lists, got \"--unknown\""},
      {{"file"}, "expected an option that begins with --, got \"file\""},
  };
  for (const auto& c : cases) CHECK_THROWS_TEXT(ArgumentError, c.second, read(c.first));
  CHECK_THROWS_TEXT(training::HelpRequested,
                    "usage: train [options]*--epochs N*[9]*--resume*--help",
                    read({"--help"}, {.epochs = 9}));
}

TEST_CASE("options: what main makes of them", "[training][options]") {
  const auto status = [](std::vector<const char*> words) {
    try {
      (void)read(std::move(words));
      return -1;
    } catch (...) {
      return training::report_exception("/usr/bin/train");
    }
  };
  CHECK(status({"--help"}) == 0);
  CHECK(status({"--unknown"}) == 1);
  CHECK(training::report_exception(nullptr) == 1);  // nothing was thrown
}

TEST_CASE("options: a program's own", "[training][options]") {
  bool full = false;
  std::int64_t digits = 9000;
  double bar = 0.5;
  std::string text = "before";
  const std::vector<training::Option> own = {{"full", "", "the large one", &full},
                                             {"digits", "N", "so many", &digits, 2},
                                             {"bar", "X", "at least", &bar},
                                             {"text", "FILE", "to read", &text}};
  CHECK(read({"--epochs", "2"}, {}, own).epochs == 2);
  CHECK((!full && digits == 9000 && bar == 0.5 && text == "before"));
  CHECK_THROWS_TEXT(training::HelpRequested,
                    "--quiet*--full *the large one\n*--digits N*so many [9000]\n*--bar "
                    "X*[0.5]*--text FILE*[before]*--help",
                    read({"--help"}, {}, own));
  refuses<ArgumentError>("--")({
      {"digits: expected a whole number >= 2, got \"1\"",
       [&] { read({"--full", "--digits", "1"}, {}, own); }},
      {"full: expected no value", [&] { read({"--text=x", "--full=1"}, {}, own); }},
      {"resume: expected --checkpoint", [&] { read({"--text=x", "--full", "--resume"}, {}, own); }},
      {"x: expected a bool without the name of a value, or another type with one, got \"\"",
       [&] { read({}, {}, {{"x", "", "", &text}}); }},
      {"x: expected a bool without", [&] { read({}, {}, {{"x", "N", "", &full}}); }},
      {"lr: expected a name of its own, got that of another option",
       [&] { read({}, {}, {{"lr", "X", "", &bar}}); }},
  });
  CHECK((!full && digits == 9000 && text == "before"));  // the failed calls change no option
  CHECK(read({"--full", "--digits=3", "--bar", "0", "--seed", "4", "--text", ""}, {}, own).seed ==
        4);
  CHECK((full && digits == 3 && bar == 0 && text.empty()));
}

TEST_CASE("progress: all batches of all epochs, with the fields of the loader's",
          "[training][progress]") {
  data::DataLoader loader(Clusters{20}, {.batch_size = 8, .shuffle = true, .seed = 1});
  data::DataLoader copy(Clusters{20}, {.batch_size = 8, .shuffle = true, .seed = 1});
  std::int64_t step = 0;
  auto other = copy.begin();
  for (auto& batch : training::progress(loader, {.epochs = 2, .quiet = true})) {
    CHECK(batch.label.to_vector<std::int64_t>() == other->label.to_vector<std::int64_t>());
    CHECK(
        (batch.step() == step && batch.epoch() == step / 3 && batch.batch_of_epoch() == step % 3));
    CHECK(batch.is_last_of_epoch() == (step % 3 == 2));
    CHECK(batch.is_last() == (step == 5));
    CHECK(loader.steps() == step + 1);
    batch.report("loss", 1.0);
    if (++step == 3) other = copy.begin();
    else ++other;
  }
  CHECK(step == 6);
  for (auto& batch : training::progress(loader, {.epochs = 2, .quiet = true}))
    FAIL("nothing is left, got step " << batch.step());
  const Made made{4, [](std::int64_t i) { return std::tuple{i, 0.5}; }};
  data::DataLoader pairs(made, {.batch_size = 4});
  for (auto& batch : training::progress(pairs, {.epochs = 1, .quiet = true})) {
    auto& [x, y] = batch;
    CHECK((x.dtype() == DType::int64 && y.size(0) == 4));
    const Tensor four = x;
    CHECK_THROWS_TEXT(ShapeError, "report: expected a tensor of one element for 'x', got [4]",
                      batch.report("x", four));
  }
}

TEST_CASE("progress: a bar on a terminal, lines elsewhere", "[training][progress]") {
  /// Runs steps 0 to `steps` - 1; each takes `seconds`.
  const auto run = [](FakeTerminal& fake, shown::Terminal terminal, std::int64_t steps,
                      std::int64_t epochs, std::int64_t batches, double seconds, bool report) {
    shown::Reporter reporter({}, {0, epochs, 0, batches}, std::move(terminal));
    for (std::int64_t step = 0; step < steps; ++step) {
      reporter.step_begins({step / batches, epochs, step % batches, batches}, 10);
      if (report) reporter.report("loss", shown::Value(1.0 / static_cast<double>(step + 1)));
      fake.time += seconds;
      reporter.step_ends();
    }
  };
  FakeTerminal bar, lines, narrow, fast;
  run(bar, bar.make(true), 7, 2, 4, 0.5, true);
  CHECK(count(bar.text, "\r") == 8);  // one per step, and one that closes the second epoch's bar
  CHECK(count(bar.text, "\n") == 2);
  CHECK(matches(bar.text,
                "\repoch 1/2  [======                  ]  1/4  20 samples/s  ETA 0:04  loss "
                "1\x1b[K\repoch 1/2*4/4  20 samples/s  ETA 0:02  loss 0.25\x1b[K\n"));
  run(lines, lines.make(false), 7, 2, 4, 0.5, true);
  CHECK(lines.text ==
        "epoch 1/2  4/4  20 samples/s  ETA 0:02  loss 0.25\nepoch 2/2  3/4  20 samples/s  ETA "
        "0:01  loss 0.1429\n");
  run(narrow, narrow.make(true, 20), 1, 2, 4, 1, false);
  CHECK(narrow.text.substr(0, 21) == "\repoch 1/2  [====== \x1b");
  run(fast, fast.make(true), 1000, 1, 1000, 0.001, false);  // rate limited
  CHECK(count(fast.text, "\r") <= 11);
  CHECK(count(fast.text, "\n") == 1);
}

TEST_CASE("progress: values go to the files that were asked for", "[training][progress]") {
  const TemporaryFolder folder;
  data::DataLoader loader(Clusters{16}, {.batch_size = 8});
  const training::Options options{.epochs = 2,
                                  .tensorboard = folder / "events/run",
                                  .csv = folder / "run.csv",
                                  .trace = folder / "trace.json",
                                  .quiet = true};
  for (auto& batch : training::progress(loader, options)) {
    batch.report("loss", full({1}, 0.5 * static_cast<double>(batch.step())));
    batch.report("a, \"b\"", 3);
  }
  const std::string csv = read_file(folder / "run.csv");
  CHECK(csv.starts_with("step,epoch,seconds,name,value\n0,0,"));
  CHECK(matches(csv, "loss,0\n*\"a, \"\"b\"\"\",3\n1,0,*loss,0.5\n*2,1,*loss,1\n*3,1,*loss,1.5\n"));
  CHECK(count(csv, "\n") == 9);

  const std::vector<std::string> names = TemporaryFolder::names_in(options.tensorboard);
  REQUIRE(names.size() == 1);
  CHECK(names[0].starts_with("events.out.tfevents."));
  const std::string events = read_file(options.tensorboard + "/" + names[0]);
  std::string expected;
  for (int i = -1; i < 8; ++i) {
    REQUIRE(events.size() > expected.size() + 21);
    const std::string wall_time = events.substr(expected.size() + 13, 8);
    double seconds = 0;
    std::memcpy(&seconds, wall_time.data(), 8);
    CHECK(seconds > 1.6e9);
    CHECK(seconds < 1e10);
    const float value = i % 2 == 0 ? 0.25f * static_cast<float>(i) : 3.0f;
    const std::string summary = bytes_field(0x0a, i % 2 == 0 ? "loss" : "a, \"b\"") + '\x15' +
                                little_endian(std::bit_cast<std::uint32_t>(value), 4);
    expected += record(
        wall_time, std::max(i, 0) / 2,
        i < 0 ? bytes_field(0x1a, "brain.Event:2") : bytes_field(0x2a, bytes_field(0x0a, summary)));
  }
  CHECK((events == expected));  // binary, so it is not printed
  const std::string trace = read_file(options.trace);
  CHECK(trace.starts_with("[\n{"));
  CHECK((count(trace, "\"wait for data\"") == 4 && count(trace, "\"step\"") == 4));
  loader.set_epoch(0);
  for (auto& batch : training::progress(loader, options)) batch.report("loss", 1);
  CHECK(count(read_file(options.csv), "step,epoch") == 1);  // the second run appends
  CHECK_THROWS_TEXT(IoError, "run.csv/x",
                    training::progress(loader, {.csv = folder / "run.csv/x"}));
}

TEST_CASE("progress: goes on where a loader was resumed", "[training][progress]") {
  data::DataLoader loader(Clusters{20}, {.batch_size = 4, .shuffle = true, .seed = 2});
  std::vector<Ids> all;
  StateDict state;
  for (auto& batch : training::progress(loader, {.epochs = 3, .quiet = true})) {
    all.push_back(batch.label.to_vector<std::int64_t>());
    if (batch.step() == 6) state = loader.state();
  }
  data::DataLoader again(Clusters{20},
                         {.batch_size = 4, .shuffle = true, .workers = 2, .seed = 77});
  again.load_state({state.data(), state.size()});
  std::size_t step = 7;
  for (auto& batch : training::progress(again, {.epochs = 3, .quiet = true})) {
    CHECK(batch.step() == static_cast<std::int64_t>(step));
    CHECK(batch.label.to_vector<std::int64_t>() == all[step++]);
  }
  CHECK(step == all.size());
}

TEST_CASE("progress: a signal ends the run after the step, with a checkpoint, saved once",
          "[training][progress][stop]") {
  const std::tuple<int, std::int64_t, std::vector<std::int64_t>> cases[] = {
      {SIGINT, 0, {3}}, {SIGTERM, 0, {3}}, {SIGTERM, 3, {3}}, {SIGTERM, 2, {2, 3}}};
  for (const auto& [signal, saves_at, numbers] : cases) {
    INFO("signal " << signal << " in step 3, saved by step " << saves_at);
    const TemporaryFolder folder;
    Run run;
    struct sigaction before{}, after{};
    sigaction(signal, nullptr, &before);
    training::Checkpoint checkpoint(folder.path(), run.model, run.optimizer, run.loader);
    std::int64_t steps = 0;
    for (auto& batch : training::progress(run.loader, {.epochs = 2, .quiet = true}, checkpoint)) {
      run.step(batch);
      if (++steps == saves_at) checkpoint.save();
      if (steps == 3) std::raise(signal);
    }
    CHECK(steps == 3);
    CHECK(training::stop_requested() == signal);
    CHECK(training::exit_status() == 128 + signal);
    CHECK(checkpoint.numbers() == numbers);
    CHECK(checkpoint.last() == 3);
    sigaction(signal, nullptr, &after);
    CHECK(after.sa_handler == before.sa_handler);
  }
  { const training::StopSignals clear; }
  CHECK(training::exit_status() == 0);
}

TEST_CASE("accuracy: counts, in eval mode, and puts the mode back", "[training][accuracy]") {
  struct Model : nn::Module {
    nn::Linear unused{1, 1};
    Tensor operator()(const Tensor& x) const {
      CHECK(!training);
      CHECK(!grad_enabled());
      return x.to(DType::float32);
    }
    BRAID_FIELDS(unused)
  };
  const auto item = [](std::int64_t i) {
    return data::Labelled{tensor({i % 2 == 0 ? 1.0f : 0.0f, 0.5f, 0.1f}),
                          full({}, i < 5 ? 0 : 1, {.dtype = DType::int64})};
  };
  const auto flat = [](std::int64_t) { return data::Labelled{zeros({3}), zeros({})}; };
  const auto three = [](std::int64_t) { return std::tuple{zeros({3}), zeros({3}), zeros({3})}; };
  Model model;
  model.unused.training = false;
  // correct: items 0, 2, 4 and 5, 7, 9
  for (const std::int64_t batch : {1, 3, 10, 100})
    CHECK(training::accuracy(model, Made{10, item}, {.batch = batch}) == 0.6);
  CHECK(model.training);
  CHECK(!model.unused.training);
  refuses<ArgumentError>("accuracy: expected ")({
      {"batch >= 1, got 0",
       [&] { return training::accuracy(model, Made{10, item}, {.batch = 0}); }},
      {"a dataset with at least one item, got 0",
       [&] { return training::accuracy(model, Made{0, item}); }},
      {"items of two tensors, input and label, got 3",
       [&] { return training::accuracy(model, Made{1, three}); }},
  });
  CHECK_THROWS_TEXT(DTypeError, "accuracy: expected labels of int64, got float32",
                    training::accuracy(model, Made{2, flat}));
}

TEST_CASE("summary: a line a layer, and the sums", "[training][summary]") {
  Run run;
  const training::Summary s = training::summary(run.model);
  REQUIRE(s.layers.size() == 3);
  CHECK(
      (s.layers[2].path == "dropout" && s.layers[2].parameters == 0 && s.layers[2].shapes.empty()));
  CHECK((s.layers[0].path == "fc1" && s.layers[0].parameters == 40 && s.layers[0].bytes == 160 &&
         s.layers[0].shapes == "weight [8, 4], bias [8]"));
  CHECK(
      (s.parameters == parameter_count(run.model) && s.trained == s.parameters && s.buffers == 0));
  requires_grad_(run.model.fc2, false);
  CHECK(
      matches(str(training::summary(run.model)),
              "layer*type*shapes*parameters*bytes\nfc1*Linear(in_features=4, out_features=8, "
              "bias=true)*weight [8, 4], bias [8]*40*160 B\nfc2*27*108 "
              "B\ndropout*Dropout(p=0.25)*0*0 B\nall*67*268 B\ntrained 40, frozen 27, buffers 0"));
}

TEST_CASE("crc: of the standards' check value, in pieces too", "[io]") {
  CHECK(io::crc32("123456789", 9) == 0xcbf43926u);
  CHECK(io::crc32c("123456789", 9) == 0xe3069283u);
  const std::string text(1000, 'x');
  for (std::size_t cut = 0; cut < 30; ++cut)
    CHECK(io::crc32c(text.data() + cut, 1000 - cut, io::crc32c(text.data(), cut)) ==
          io::crc32c(text.data(), 1000));
  CHECK(io::crc32c("", 0) == 0);
}
