#include <braid/nn/internal/manifest.hpp>

#include "nn/train_run.hpp"
#include "support/errors.hpp"
#include "support/faulty_files.hpp"
#include "support/temporary.hpp"
#include "support/warnings.hpp"

using namespace braid;
using namespace braid::test;

namespace {

constexpr std::int64_t kEpochs = 3;

/// Trains to the end of the epochs, or for `steps` steps.
void train_on(Run& run, std::int64_t steps = -1) {
  while (run.loader.epoch() < kEpochs)
    for (auto& batch : run.loader) {
      run.step(batch);
      if (--steps == 0) return;
    }
}

struct Statistics {
  Tensor mean = zeros({2});
  BRAID_FIELDS(mean)
};

}  // namespace

TEST_CASE("checkpoint: a run that is stopped anywhere and resumed ends with the same bits",
          "[training][checkpoint]") {
  Run whole;
  train_on(whole);
  const std::size_t expected = whole.bits();
  for (const std::int64_t stop : {1, 2, 6, 7, 8, 13, 14, 20, 21}) {  // 7 batches per epoch
    INFO("stopped after step " << stop);
    const TemporaryFolder folder;
    {
      Run first;
      training::Checkpoint checkpoint(folder / "deep/run", first.model, first.optimizer,
                                      first.loader);
      CHECK_FALSE(checkpoint.load_latest());
      train_on(first, stop);
      checkpoint.save();
      CHECK(checkpoint.numbers() == std::vector<std::int64_t>{stop});
    }
    Run second(99);  // other weights, another order, other noise
    training::Checkpoint checkpoint(folder / "deep/run", second.model, second.optimizer,
                                    second.loader);
    REQUIRE(checkpoint.load_latest());
    second.loader.set_epoch(second.loader.epoch());  // as loops with a DistributedSampler do
    train_on(second);
    CHECK(second.bits() == expected);
  }
}

TEST_CASE("checkpoint: keeps momenta that were set later, and refuses those that do not fit",
          "[training][checkpoint]") {
  const TemporaryFolder folder;
  nn::Linear model(2, 2);
  const auto sgd = [&](double momentum, double of_bias) {
    return optim::SGD({{{model.weight}, {.lr = 0.1, .momentum = momentum}},
                       {{model.bias}, {.lr = 0.2, .momentum = of_bias}}});
  };
  optim::SGD first = sgd(0.9, 0), second = sgd(0.5, 0);
  optim::AdamW adam(parameters(model)), other(parameters(model));
  first.set_momentum(0, 0.7);
  adam.set_momentum(0, 0.25);
  training::Checkpoint(folder / "a", first, adam).save();
  CHECK(training::Checkpoint(folder / "a", second, other).load_latest());
  CHECK((second.momentum(0) == 0.7 && !second.has_momentum(1) && second.lr(1) == 0.2));
  CHECK(other.options().beta1 == 0.25);

  optim::SGD both = sgd(0.9, 0.9), large = sgd(1.5, 0), same = sgd(1.5, 0);
  const auto loaded = [&](optim::SGD& from, optim::SGD& into) {
    training::Checkpoint(folder / "b", from).save();
    (void)training::Checkpoint(folder / "b", into).load_latest();
  };
  CHECK_NOTHROW(loaded(large, same));  // SGD takes it, set_momentum does not
  const double before = second.lr();
  first.set_lr(0.3), both.set_lr(0.3), large.set_lr(0.3);
  CHECK_THROWS_TEXT(ArgumentError,
                    "expected no momentum of group 1, which was made without, got 0.9",
                    loaded(both, second));
  CHECK_THROWS_TEXT(ArgumentError, "expected 0 <= momentum < 1 of group 1*got nan",
                    loaded(first, both));
  CHECK_THROWS_TEXT(ArgumentError, "expected 0 <= momentum < 1 of group 0*got 1.5",
                    loaded(large, second));
  CHECK((second.lr() == before && second.momentum(0) == 0.7));

  StateDict old = state_dict(second);  // of a version that did not save momenta
  old.set("lr", tensor({0.4, 0.5}, {.device = Device(), .dtype = DType::float64}));
  training::detail::load_optimizer(second, old, [&](const auto& rest) { second.load_state(rest); });
  CHECK((second.lr(1) == 0.5 && second.momentum(0) == 0.7));
}

TEST_CASE("checkpoint: while an average is swapped in, nothing is saved or loaded",
          "[training][checkpoint]") {
  const TemporaryFolder folder;
  Run run;
  optim::Average average(run.model);
  average.update();
  training::Checkpoint checkpoint(folder.path(), run.model, average);
  checkpoint.save();
  const optim::Averaged guard(average);
  const char* const refused = "Checkpoint: expected the model's own parameters, got";
  CHECK_THROWS_TEXT(ArgumentError, refused, checkpoint.save());
  CHECK_THROWS_TEXT(ArgumentError, refused, checkpoint.load_latest());
  CHECK(checkpoint.numbers().size() == 1);
}

TEST_CASE("checkpoint: without a folder nothing is saved", "[training][checkpoint]") {
  Run run;
  training::Checkpoint checkpoint("", run.model);
  checkpoint.save();
  CHECK(!checkpoint.load_latest());
  CHECK(checkpoint.numbers().empty());
  CHECK_THROWS_TEXT(ArgumentError, "Checkpoint: load: expected a folder", checkpoint.load(1));
  CHECK_THROWS_TEXT(ArgumentError, "Checkpoint: expected keep >= 1, got 0",
                    training::Checkpoint({.folder = "x", .keep = 0}, run.model));
}

TEST_CASE("checkpoint: the newest are kept, the number grows, unfinished ones are swept away",
          "[training][checkpoint]") {
  const TemporaryFolder folder;
  Run run;
  training::Checkpoint checkpoint({.folder = folder.path(), .keep = 3}, run.model, run.optimizer);
  for (int i = 0; i < 5; ++i) checkpoint.save();
  CHECK(checkpoint.numbers() == std::vector<std::int64_t>{3, 4, 5});
  training::Checkpoint other({.folder = folder.path(), .keep = 2}, run.model, run.optimizer);
  CHECK(::mkdir((folder / "step-00000009.tmp").c_str(), 0777) == 0);
  CHECK(::mkdir((folder / "step-00000008").c_str(), 0777) == 0);  // not a checkpoint: no manifest
  write_file(folder / "step-00000009.tmp/model.safetensors", "half");
  write_file(folder / "notes.txt", "mine");
  REQUIRE(other.load_latest());
  other.save();
  CHECK(other.numbers() == std::vector<std::int64_t>{5, 9});
  CHECK(folder.names().size() == 3);  // notes.txt stays
  checkpoint.load(5);
  CHECK_THROWS_TEXT(IoError, "step-00000004", checkpoint.load(4));
}

TEST_CASE("checkpoint: of plain tensors alone is refused, and keeps them on request",
          "[training][checkpoint][errors]") {
  const TemporaryFolder folder;
  Statistics s;
  CHECK_THROWS_TEXT(ArgumentError,
                    "Checkpoint: expected parameters or buffers in Statistics, got plain tensors "
                    "alone: declare them as nn::Parameter or nn::Buffer, or ask for them with "
                    "{.tensors = true}",
                    training::Checkpoint(folder / "a", s));
  training::Checkpoint kept({.folder = folder / "b", .tensors = true}, s);
  s.mean.fill_(4);
  kept.save();
  s.mean.fill_(5);
  CHECK(kept.load_latest());
  CHECK(s.mean.to_vector<double>() == std::vector<double>{4, 4});
  std::vector<nn::Linear> none;
  training::Checkpoint nothing(folder / "a", none);
  CHECK_THROWS_TEXT(ArgumentError,
                    "Checkpoint: expected something to save in vector, got a tree without tensors",
                    nothing.save());
  CHECK_FALSE(nothing.load_latest());
  CHECK(folder.names() == std::vector<std::string>{"b"});
}

TEST_CASE("checkpoint: files are what others can read", "[training][checkpoint]") {
  const TemporaryFolder folder;
  Run run;
  Run second;
  training::Checkpoint checkpoint(folder.path(), run.model, run.optimizer, run.loader,
                                  second.model);
  checkpoint.save();
  const Safetensors model = load_safetensors(folder / "step-00000000/model.safetensors");
  CHECK(model.tensors.size() == 4);
  CHECK(model.at("fc1.weight").shape() == Shape{8, 4});
  CHECK(load_safetensors(folder / "step-00000000/optimizer.safetensors").at("lr").item<double>() ==
        0.01);
  CHECK(load_safetensors(folder / "step-00000000/model-2.safetensors").tensors.size() == 4);
  const training::Manifest manifest =
      training::read_manifest(io::InputFile(folder / "step-00000000/manifest.json"));
  CHECK(manifest.step == 0);
  CHECK(manifest.files.size() == 5);
  CHECK(TemporaryFolder::names_in(folder / "step-00000000").size() == 6);
}

TEST_CASE("checkpoint: one of other things does not fit, and nothing is changed",
          "[training][checkpoint][errors]") {
  const TemporaryFolder folder;
  Run run;
  run.step(*run.loader.begin());
  training::Checkpoint(folder.path(), run.model, run.optimizer).save();
  training::Checkpoint more(folder.path(), run.model, run.optimizer, run.loader);
  CHECK_THROWS_TEXT(ArgumentError,
                    "expected random.safetensors, model.safetensors, optimizer.safetensors, "
                    "loader.safetensors, got*optimizer.safetensors",
                    more.load_latest());
  // The model fits, the optimizer does not. The model must not be loaded either.
  Run changed(17);
  optim::SGD sgd(parameters(changed.model), {.lr = 1, .momentum = 0.9});
  training::Checkpoint other(folder.path(), changed.model, sgd);
  for (int i = 0; i < 2; ++i) {
    const std::size_t before = changed.bits();
    CHECK_THROWS_TEXT(ArgumentError, "optimizer.safetensors*does not fit*exp_avg",
                      other.load_latest());
    CHECK(changed.bits() == before);
    changed.step(*changed.loader.begin());
    sgd.step();
    training::Checkpoint(folder.path(), run.model, run.optimizer).save();
    run.step(*run.loader.begin());
    training::Checkpoint(folder.path(), run.model, run.optimizer).save();
  }
}

TEST_CASE("checkpoint: a damaged one is passed over with a warning; if all are, it is an error",
          "[training][checkpoint][errors]") {
  const TemporaryFolder folder;
  Run run;
  training::Checkpoint checkpoint(folder.path(), run.model, run.optimizer, run.loader);
  checkpoint.save();
  const std::size_t old_bits = run.bits();
  run.step(*run.loader.begin());
  checkpoint.save();
  const std::string newest = folder / "step-00000001/";
  const std::string model = read_file(newest + "model.safetensors"),
                    manifest = read_file(newest + "manifest.json");
  std::string flipped = model;
  flipped[model.size() - 3] = static_cast<char>(flipped[model.size() - 3] ^ 1);
  const auto check_passed_over = [&](const std::string& text) {
    const Warnings warnings;
    CHECK(checkpoint.load_latest());
    CHECK(run.bits() == old_bits);
    REQUIRE(warnings.texts.size() == 1);
    INFO(warnings.texts[0]);
    CHECK(matches(warnings.texts[0],
                  "Checkpoint: a damaged checkpoint is passed over*step-00000001*" + text));
    CHECK_THROWS_AS(checkpoint.load(1), IoError);
  };
  write_file(newest + "model.safetensors", flipped);
  check_passed_over("crc32c: expected");
  write_file(newest + "model.safetensors", model.substr(0, model.size() - 1));
  check_passed_over("size: expected");
  std::remove((newest + "model.safetensors").c_str());
  check_passed_over("model.safetensors");
  write_file(newest + "model.safetensors", model);
  write_file(newest + "manifest.json", manifest.substr(0, manifest.size() / 2));
  check_passed_over("manifest.json");
  write_file(newest + "manifest.json", "");
  check_passed_over("manifest.json");
  write_file(folder / "step-00000000/manifest.json", "{");
  const Warnings quiet;
  CHECK_THROWS_TEXT(FormatError, "step-00000001*manifest", checkpoint.load_latest());
}

TEST_CASE("manifest: hostile ones are errors", "[training][checkpoint][errors]") {
  const auto read = [](const std::string& text) {
    return training::read_manifest(io::MemorySource(as_bytes(text)));
  };
  const std::string good =
      training::to_json({.version = "0.1.0",
                         .step = 7,
                         .files = {{"a.safetensors", 5, 4000000000u}, {"b-2.safetensors", 0, 0}}});
  const training::Manifest m = read(good);
  CHECK((m.version == "0.1.0" && m.step == 7 && m.files.size() == 2 &&
         m.files[0].crc32c == 4000000000u && m.files[1].name == "b-2.safetensors"));
  CHECK(training::to_json(m) == good);
  for (std::size_t length = 0; length + 1 < good.size(); ++length)
    CHECK_THROWS_AS(read(good.substr(0, length)), FormatError);
  const std::tuple<std::string, const char*, const char*> cases[] = {
      {"\"format\":1", "\"format\":2", "format: expected 1, got 2"},
      {"\"format\":1,", "", "the key \"format\""},
      {"\"step\":7", "\"step\":-7", "step: expected a whole number"},
      {"\"step\":7", "\"step\":7.5", "step: expected a whole number"},
      {"\"step\":7", "\"step\":7,\"step\":7", "each key once"},
      {"\"step\":7", "\"step\":7,\"class\":\"os.system\"", "one of its known keys"},
      {"4000000000", "4294967296", "a number below 2^32"},
      {"a.safetensors", "../a.safetensors", "name: expected"},
      {"a.safetensors", "/etc/passwd", "name: expected"},
      {"a.safetensors", ".safetensors", "name: expected"},
      {"a.safetensors", "A.safetensors", "name: expected"},
      {"a.safetensors", "a\\u0000.safetensors", "name: expected"},
      {"a.safetensors", "b-2.safetensors", "each file once"},
      {"]}", "]}x", "nothing but spaces"},
      {"]}", "]]", "'}'"},
  };
  for (const auto& [from, to, why] : cases) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::string said;
    try {
      static_cast<void>(read(text));
    } catch (const FormatError& e) {
      said = e.what();
    }
    INFO(text << ": " << said);
    CHECK(matches(said, why));
  }
  CHECK_THROWS_TEXT(LimitError, "at most 65536 bytes", read(std::string(65537, ' ')));
  std::string many = R"({"format":1,"braid":"x","step":0,"files":[)";
  for (int i = 0; i < 65; ++i)
    many += str(R"({"name":"f)", i, R"(.safetensors","bytes":0,"crc32c":0},)");
  many.back() = ']';
  CHECK_THROWS_TEXT(LimitError, "at most 64 files", read(many + "}"));
}

TEST_CASE("checkpoint: any failing call of a save leaves the old ones, and says what failed",
          "[training][checkpoint][errors]") {
  for (const int error : {EIO, ENOSPC}) {
    for (const bool persistent : {false, true}) {
      int k = 1;
      for (bool done = false; !done; ++k) {
        INFO("call " << k << " error " << error << " persistent " << persistent);
        const TemporaryFolder folder;
        Run run;
        training::Checkpoint checkpoint(folder.path(), run.model, run.optimizer, run.loader);
        checkpoint.save();
        checkpoint.save();
        const std::size_t old_bits = run.bits();
        run.step(*run.loader.begin());
        const std::size_t new_bits = run.bits();
        const int files = open_files();
        bool saved = false;
        {
          const Warnings quiet;
          const WithFaults with({.fail_at = k, .error = error, .persistent = persistent});
          try {
            checkpoint.save();
            saved = true;
            done = faults.calls < k;
          } catch (const IoError& e) {
            CHECK(e.error_number == error);
            CHECK(e.retryable() == (error == ENOSPC));
          }
        }
        CHECK(open_files() == files);
        REQUIRE(checkpoint.load_latest());
        if (saved) CHECK(run.bits() == new_bits);
        else CHECK((run.bits() == old_bits || run.bits() == new_bits));
        run.step(*run.loader.begin());
        checkpoint.save();  // the next save works, and removes leftovers
        CHECK(folder.names().size() == 2);
      }
      CHECK(k > 30);
    }
  }
}

TEST_CASE(
    "checkpoint: any failing call of a load changes nothing; short and interrupted ones are gone "
    "on with",
    "[training][checkpoint][errors]") {
  const TemporaryFolder folder;
  Run run;
  training::Checkpoint checkpoint(folder.path(), run.model, run.optimizer, run.loader);
  run.step(*run.loader.begin());
  checkpoint.save();
  const std::size_t saved = run.bits();
  run.step(*run.loader.begin());
  int k = 1;
  for (bool done = false; !done; ++k) {
    INFO("call " << k);
    const WithFaults with({.fail_at = k});
    try {
      const bool found = checkpoint.load_latest();  // not inside CHECK, which would catch
      CHECK(found);
      done = faults.calls < k;
      if (!done) CHECK(faults.failed == "close");
      CHECK(run.bits() == saved);
      run.step(*run.loader.begin());
    } catch (const IoError&) {
      CHECK(run.bits() != saved);
    }
  }
  CHECK(k > 15);
  for (int i = 1; i < 60; ++i) {
    const WithFaults with({.fail_at = i, .error = EINTR, .most = 7});
    if (i % 2 == 0) checkpoint.save();
    else CHECK(checkpoint.load_latest());
  }
}
