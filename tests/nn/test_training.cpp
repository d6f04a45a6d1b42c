// Options, progress and its files, accuracy, summary, stop signals.
#include <csignal>
#include <cstring>
#include <map>
#include <sstream>
#include <tuple>

#include <braid/core/device.hpp>
#include <braid/core/error.hpp>
#include <braid/core/io/crc.hpp>
#include <braid/nn/training.hpp>

#include "nn/train_run.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
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

struct LoggedEvent {
  double wall_time = 0;
  std::uint64_t step = 0;
  std::string version, tag;
  float value = 0;
};

/// A reader of TensorBoard's files that shares nothing with the writer: records, then protobuf by
/// hand.
class EventReader {
 public:
  explicit EventReader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::vector<LoggedEvent> all() {
    std::vector<LoggedEvent> events;
    while (at_ < bytes_.size()) events.push_back(event(record()));
    return events;
  }

 private:
  template <class T> static T fixed(const std::string& from, std::size_t& at) {
    T value{};
    REQUIRE(from.size() - at >= sizeof value);
    std::memcpy(&value, from.data() + at, sizeof value);
    at += sizeof value;
    return value;
  }
  static std::uint64_t varint(const std::string& from, std::size_t& at) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(from.at(at++));
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  }
  /// Bit by bit.
  static std::uint32_t masked(const std::string& bytes) {
    std::uint32_t r = 0xffffffffu;
    for (const char c : bytes) {
      r ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1u) != 0 ? 0x82f63b78u : 0u);
    }
    r = ~r;
    return ((r >> 15) | (r << 17)) + 0xa282ead8u;
  }
  std::string record() {
    const std::string head = bytes_.substr(at_, 8);
    const auto length = fixed<std::uint64_t>(bytes_, at_);
    CHECK(fixed<std::uint32_t>(bytes_, at_) == masked(head));
    const std::string data = bytes_.substr(at_, length);
    at_ += length;
    CHECK(fixed<std::uint32_t>(bytes_, at_) == masked(data));
    return data;
  }
  static LoggedEvent event(const std::string& data) {
    LoggedEvent e;
    for (std::size_t at = 0; at < data.size();) {
      const std::uint64_t key = varint(data, at);
      if (key == 0x09) e.wall_time = fixed<double>(data, at);
      else if (key == 0x10) e.step = varint(data, at);
      else if (key == 0x1a || key == 0x2a) {
        const std::uint64_t size = varint(data, at);
        const std::string part = data.substr(at, size);
        at += size;
        if (key == 0x1a) e.version = part;
        else summary(part, e);
      } else FAIL("unknown field " << key);
    }
    return e;
  }
  static void summary(const std::string& data, LoggedEvent& e) {
    std::size_t at = 0;
    REQUIRE(varint(data, at) == 0x0a);
    const std::uint64_t size_of_value = varint(data, at);
    REQUIRE(size_of_value == data.size() - at);
    while (at < data.size()) {
      const std::uint64_t key = varint(data, at);
      if (key == 0x0a) {
        const std::uint64_t size = varint(data, at);
        e.tag = data.substr(at, size);
        at += size;
      } else {
        REQUIRE(key == 0x15);
        e.value = fixed<float>(data, at);
      }
    }
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

/// A terminal in memory, and a clock that goes on by what it is told.
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
  struct Case {
    std::vector<const char*> words;
    const char* text;
  };
  const Case cases[] = {
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
  for (const Case& c : cases) CHECK_THROWS_TEXT(ArgumentError, c.text, read(c.words));
  CHECK_THROWS_TEXT(training::HelpRequested,
                    "usage: train [options]*--epochs N*[9]*--resume*--help",
                    read({"--help"}, {.epochs = 9}));
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
  CHECK_THROWS_TEXT(ArgumentError, "--digits: expected a whole number >= 2, got \"1\"",
                    read({"--full", "--digits", "1"}, {}, own));
  CHECK_THROWS_TEXT(ArgumentError, "--full: expected no value",
                    read({"--text=x", "--full=1"}, {}, own));
  CHECK_THROWS_TEXT(ArgumentError, "--resume: expected --checkpoint",
                    read({"--text=x", "--full", "--resume"}, {}, own));
  CHECK((!full && digits == 9000 && text == "before"));  // nothing half read
  CHECK(read({"--full", "--digits=3", "--bar", "0", "--seed", "4", "--text", ""}, {}, own).seed ==
        4);
  CHECK((full && digits == 3 && bar == 0 && text.empty()));

  CHECK_THROWS_TEXT(
      ArgumentError,
      "--x: expected a bool without the name of a value, or another type with one, got \"\"",
      read({}, {}, {{"x", "", "", &text}}));
  CHECK_THROWS_TEXT(ArgumentError, "--x: expected a bool without",
                    read({}, {}, {{"x", "N", "", &full}}));
  CHECK_THROWS_TEXT(ArgumentError, "--lr: expected a name of its own, got that of another option",
                    read({}, {}, {{"lr", "X", "", &bar}}));
}

TEST_CASE("progress: all batches of all epochs, with the fields of the loader's",
          "[training][progress]") {
  data::DataLoader loader(Clusters{20}, {.batch_size = 8, .shuffle = true, .seed = 1});
  data::DataLoader twin(Clusters{20}, {.batch_size = 8, .shuffle = true, .seed = 1});
  std::int64_t step = 0;
  auto other = twin.begin();
  for (auto& batch : training::progress(loader, {.epochs = 2, .quiet = true})) {
    CHECK(batch.label.to_vector<std::int64_t>() == other->label.to_vector<std::int64_t>());
    CHECK(
        (batch.step() == step && batch.epoch() == step / 3 && batch.batch_of_epoch() == step % 3));
    CHECK(batch.is_last_of_epoch() == (step % 3 == 2));
    CHECK(batch.is_last() == (step == 5));
    CHECK(loader.steps() == step + 1);
    batch.report("loss", 1.0);
    if (++step == 3) other = twin.begin();
    else ++other;
  }
  CHECK(step == 6);
  for (auto& batch : training::progress(loader, {.epochs = 2, .quiet = true}))
    FAIL("nothing is left, got step " << batch.step());
  struct Pairs {
    [[nodiscard]] std::int64_t size() const { return 4; }
    [[nodiscard]] std::tuple<std::int64_t, double> get(std::int64_t i) const { return {i, 0.5}; }
  };
  data::DataLoader pairs(Pairs{}, {.batch_size = 4});
  for (auto& batch : training::progress(pairs, {.epochs = 1, .quiet = true})) {
    auto& [x, y] = batch;
    CHECK((x.dtype() == DType::int64 && y.size(0) == 4));
    const Tensor four = x;
    CHECK_THROWS_TEXT(ShapeError, "report: expected a tensor of one element for 'x', got [4]",
                      batch.report("x", four));
  }
}

TEST_CASE("progress: a bar on a terminal, lines elsewhere", "[training][progress]") {
  const shown::Place start{.epoch = 0, .epochs = 2, .batch = 0, .batches = 4};
  for (const bool is_terminal : {true, false}) {
    FakeTerminal fake;
    {
      shown::Reporter reporter({}, start, fake.make(is_terminal));
      for (std::int64_t step = 0; step < 7; ++step) {
        reporter.step_begins({step / 4, 2, step % 4, 4}, 10);
        reporter.report("loss", shown::Value(1.0 / static_cast<double>(step + 1)));
        fake.time += 0.5;
        reporter.step_ends();
      }
    }
    INFO(fake.text);
    if (is_terminal) {
      CHECK(count(fake.text, "\r") == 8);  // one a step, and the one that closes the second epoch's
      CHECK(count(fake.text, "\n") == 2);
      CHECK(matches(fake.text,
                    "\repoch 1/2  [======                  ]  1/4  20 samples/s  ETA 0:04  loss "
                    "1\x1b[K\repoch 1/2*4/4  20 samples/s  ETA 0:02  loss 0.25\x1b[K\n"));
    } else {
      CHECK(fake.text ==
            "epoch 1/2  4/4  20 samples/s  ETA 0:02  loss 0.25\nepoch 2/2  3/4  20 samples/s  ETA "
            "0:01  loss 0.1429\n");
    }
  }
  FakeTerminal narrow;
  {
    shown::Reporter reporter({}, start, narrow.make(true, 20));
    reporter.step_begins(start, 10);
    narrow.time += 1;
    reporter.step_ends();
  }
  CHECK(narrow.text.substr(0, 21) == "\repoch 1/2  [====== \x1b");
  FakeTerminal fast;  // rate limited
  {
    shown::Reporter reporter({}, {0, 1, 0, 1000}, fast.make(true));
    for (std::int64_t step = 0; step < 1000; ++step) {
      reporter.step_begins({0, 1, step, 1000}, 1);
      fast.time += 0.001;
      reporter.step_ends();
    }
  }
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
  const std::vector<LoggedEvent> events =
      EventReader(read_file(options.tensorboard + "/" + names[0])).all();
  REQUIRE(events.size() == 9);
  CHECK(events[0].version == "brain.Event:2");
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(events[i + 1].step == i / 2);
    CHECK(events[i + 1].tag == (i % 2 == 0 ? "loss" : "a, \"b\""));
    CHECK(events[i + 1].value == (i % 2 == 0 ? 0.5f * static_cast<float>(i / 2) : 3.0f));
    CHECK(events[i + 1].wall_time > 1.6e9);
  }
  const std::string trace = read_file(options.trace);
  CHECK(trace.starts_with("[\n{"));
  CHECK((count(trace, "\"wait for data\"") == 4 && count(trace, "\"step\"") == 4));
  loader.set_epoch(0);
  for (auto& batch : training::progress(loader, options)) batch.report("loss", 1);
  CHECK(count(read_file(options.csv), "step,epoch") == 1);  // appended
  CHECK_THROWS_TEXT(IoError, "run.csv/x",
                    training::progress(loader, {.csv = folder / "run.csv/x"}));
}

TEST_CASE("progress: goes on where a loader was resumed", "[training][progress]") {
  data::DataLoader loader(Clusters{20}, {.batch_size = 4, .shuffle = true, .seed = 2});
  std::vector<std::vector<std::int64_t>> all;
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

TEST_CASE("progress: a signal ends the run after the step, with a checkpoint",
          "[training][progress][stop]") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    Run run;
    struct sigaction before{}, after{};
    sigaction(signal, nullptr, &before);
    training::Checkpoint checkpoint(folder.path(), run.model, run.optimizer, run.loader);
    std::int64_t steps = 0;
    for (auto& batch : training::progress(run.loader, {.epochs = 2, .quiet = true}, checkpoint)) {
      run.step(batch);
      if (++steps == 3) std::raise(signal);
    }
    CHECK(steps == 3);
    CHECK(training::stop_requested() == signal);
    CHECK(training::exit_status() == 128 + signal);
    CHECK(checkpoint.numbers() == std::vector<std::int64_t>{3});
    sigaction(signal, nullptr, &after);
    CHECK(after.sa_handler == before.sa_handler);
  }
  { const training::StopSignals clear; }
  CHECK(training::exit_status() == 0);
}

TEST_CASE("progress: a step that has saved is not saved a second time when a signal stops the run",
          "[training][progress][stop]") {
  for (const std::int64_t saves_at : {3, 2}) {  // the step of the signal, and the one before it
    INFO("saved by step " << saves_at << ", stopped in step 3");
    const TemporaryFolder folder;
    Run run;
    training::Checkpoint checkpoint(folder.path(), run.model, run.optimizer, run.loader);
    std::int64_t steps = 0;
    for (auto& batch : training::progress(run.loader, {.epochs = 2, .quiet = true}, checkpoint)) {
      run.step(batch);
      if (++steps == saves_at) checkpoint.save();
      if (steps == 3) std::raise(SIGTERM);
    }
    CHECK(steps == 3);
    CHECK(checkpoint.numbers() ==
          (saves_at == 3 ? std::vector<std::int64_t>{3} : std::vector<std::int64_t>{2, 3}));
    CHECK(checkpoint.last() == 3);
  }
  { const training::StopSignals clear; }
}

TEST_CASE("accuracy: counts, in eval mode, and puts the mode back", "[training][accuracy]") {
  struct Model : nn::Module {
    nn::Linear unused{1, 1};
    Tensor operator()(const Tensor& x) const {
      CHECK_FALSE(training);
      CHECK_FALSE(grad_enabled());
      return x.to(DType::float32);
    }
    BRAID_FIELDS(unused)
  };
  struct Items {
    [[nodiscard]] std::int64_t size() const { return 10; }
    [[nodiscard]] data::Labelled get(std::int64_t i) const {
      return {tensor({i % 2 == 0 ? 1.0f : 0.0f, 0.5f, 0.1f}),
              full({}, i < 5 ? 0 : 1, {.dtype = DType::int64})};
    }
  };
  Model model;
  model.unused.training = false;
  // 0, 2, 4 and 5, 7, 9
  for (const std::int64_t batch : {1, 3, 10, 100})
    CHECK(training::accuracy(model, Items{}, {.batch = batch}) == 0.6);
  CHECK(model.training);
  CHECK_FALSE(model.unused.training);
  CHECK_THROWS_TEXT(ArgumentError, "accuracy: expected batch >= 1, got 0",
                    training::accuracy(model, Items{}, {.batch = 0}));
  struct None : Items {
    [[nodiscard]] std::int64_t size() const { return 0; }
  };
  CHECK_THROWS_TEXT(ArgumentError, "accuracy: expected a dataset with at least one item, got 0",
                    training::accuracy(model, None{}));
  struct Three {
    [[nodiscard]] std::int64_t size() const { return 1; }
    [[nodiscard]] std::tuple<Tensor, Tensor, Tensor> get(std::int64_t) const {
      return {zeros({3}), zeros({3}), zeros({3})};
    }
  };
  CHECK_THROWS_TEXT(ArgumentError,
                    "accuracy: expected items of two tensors, input and label, got 3",
                    training::accuracy(model, Three{}));
  struct Flat {
    [[nodiscard]] std::int64_t size() const { return 2; }
    [[nodiscard]] data::Labelled get(std::int64_t) const { return {zeros({3}), zeros({})}; }
  };
  CHECK_THROWS_TEXT(DTypeError, "accuracy: expected labels of int64, got float32",
                    training::accuracy(model, Flat{}));
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
  std::ostringstream out;
  out << training::summary(run.model);
  CHECK(
      matches(out.str(),
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
