// Byte pair encoding: the tokens of Hugging Face's tokenizers (goldens/make_bpe.py), every byte
// there and back, and files that are refused.
#include <chrono>
#include <cstdlib>
#include <iostream>

#include <braid/core/safetensors.hpp>
#include <braid/data/bpe.hpp>
#include <braid/data/text.hpp>

#include "items.hpp"
#include "nn/refused.hpp"
#include "support/temporary.hpp"
#include "support/tensors.hpp"
#include "support/tests_dir.hpp"

using namespace braid;
using namespace braid::test;

namespace {

data::BytePairVocabulary small() {
  const std::string folder = tests_dir() + "/goldens/bpe/";
  return {folder + "vocab.json", folder + "merges.txt"};
}

/// Compares with the cases of a folder. Returns their number.
std::size_t compare(const std::string& folder) {
  const data::BytePairVocabulary bpe(folder + "/vocab.json", folder + "/merges.txt");
  const Safetensors file = load_safetensors(folder + "/cases.safetensors");
  const auto numbers = [&](const char* name) { return file.at(name).to_vector<std::int64_t>(); };
  const Tensor bytes = file.at("text");
  const std::string_view all(static_cast<const char*>(bytes.id()->data()),
                             static_cast<std::size_t>(bytes.numel()));
  const Ids want = numbers("ids"), text_ends = numbers("text_ends"), ids_ends = numbers("ids_ends"),
            special = numbers("special");
  std::int64_t text_begin = 0, ids_begin = 0;
  for (std::size_t i = 0; i < text_ends.size(); ++i) {
    const auto text = std::string(all.substr(static_cast<std::size_t>(text_begin),
                                             static_cast<std::size_t>(text_ends[i] - text_begin)));
    const Tensor got = bpe.encode(text, special[i] != 0);
    const Ids expected(want.begin() + ids_begin, want.begin() + ids_ends[i]);
    if (ids(got) != expected || bpe.decode(got) != text)
      FAIL_CHECK("case " << i << " (" << text.substr(0, 80) << "): expected "
                         << str(tensor(expected)) << ", got " << str(got));
    text_begin = text_ends[i];
    ids_begin = ids_ends[i];
  }
  return text_ends.size();
}

/// Returns a text of the bytes of the generator, of which many are no UTF-8.
std::string random_bytes(std::uint64_t seed, std::size_t size) {
  Numbers numbers(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(numbers.bits() >> 13);
  return text;
}

}  // namespace

TEST_CASE("bpe: the tokens of Hugging Face's tokenizers", "[data][bpe]") {
  CHECK(compare(tests_dir() + "/goldens/bpe") == 369);
  const data::BytePairVocabulary bpe = small();
  CHECK(bpe.size() == 331);
  CHECK(bpe.end_of_text() == 330);
  CHECK(bpe.bytes(330) == "<|endoftext|>");
  CHECK(bpe.bytes(328) == "\xe6\x96\x87");  // the bytes of a character in one token
}

TEST_CASE("bpe: a vocabulary and cases that BRAID_BPE names", "[data][bpe]") {
  const char* folder = std::getenv("BRAID_BPE");
  if (folder == nullptr) return;
  std::cout << "SHOWS: bpe " << compare(folder) << " cases of " << folder << '\n';
}

TEST_CASE("bpe: bytes without merges", "[data][bpe]") {
  const data::BytePairVocabulary bytes;
  CHECK(bytes.size() == 257);
  CHECK(bytes.end_of_text() == 256);
  CHECK(ids(bytes.encode("!~\xa1\xff a")) == Ids{0, 93, 94, 187, 220, 64});  // as in GPT-2
  CHECK(ids(bytes.encode("a<|endoftext|>b", true)) == Ids{64, 256, 65});
  CHECK(bytes.encode("a<|endoftext|>b").numel() == 15);
  CHECK(bytes.encode("").numel() == 0);
  CHECK(bytes.encode("a").dtype() == DType::int64);
  CHECK(bytes.decode(tensor({{64, 256}, {65, 64}})) == "a<|endoftext|>ba");
}

TEST_CASE("bpe: any bytes come back", "[data][bpe]") {
  const data::BytePairVocabulary merged = small(), bytes;
  std::string each;
  for (int i = 0; i < 256; ++i) each += static_cast<char>(i);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = seed == 0 ? each : random_bytes(seed, seed);
    CHECK(merged.decode(merged.encode(text)) == text);
    CHECK(merged.decode(merged.encode(text, true)) == text);
    CHECK(bytes.decode(bytes.encode(text)) == text);
    CHECK(ids(bytes.encode(text)).size() == text.size());
  }
  // a byte that is no UTF-8 is neither a letter nor a space, so the space belongs to it
  for (const char* text : {"er \xff\xfe er", "er \xc0\xa0 er", "er \xe6\x96", "er \xed\xa0\x80"})
    CHECK(merged.decode(merged.encode(text)) == text);
  CHECK(ids(merged.encode("er \xff\xfe")) == Ids{ids(merged.encode("er"))[0], 220, 187, 186});
}

TEST_CASE("bpe: a long piece takes no quadratic time", "[data][bpe]") {
  const data::BytePairVocabulary bpe = small();
  for (const std::string& unit :
       {std::string(" "), std::string("er"), std::string("\xe6\x96\x87")}) {
    std::string text;
    while (text.size() < 400'000) text += unit;
    const auto start = std::chrono::steady_clock::now();
    const Tensor tokens = bpe.encode(text);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    CHECK(bpe.decode(tokens) == text);
  }
}

TEST_CASE("bpe: files that are refused", "[data][bpe][errors][hostile]") {
  const TemporaryFolder folder;
  const std::string vocab = folder / "vocab.json", merges = folder / "merges.txt";
  const std::string golden = data::read_text(tests_dir() + "/goldens/bpe/vocab.json"),
                    bytes = golden.substr(0, golden.rfind('}')), right = bytes + "}";
  const auto refused = [&](const std::string& json, const std::string& list) {
    return [&vocab, &merges, json, list] {
      write_file(vocab, json);
      write_file(merges, list);
      (void)data::BytePairVocabulary(vocab, merges);
    };
  };
  CHECK_NOTHROW(refused(right, "")());
  CHECK_NOTHROW(refused(right + "\r\n \t", "e r\n")());
  refuses<FormatError>("")({
      {"vocab.json: token", refused("{\"", "")},
      {"vocab.json: tokens", refused("", "")},
      {"vocab.json: tokens*expected a token for each byte, got none for byte 0", refused("{}", "")},
      {"expected a token for each byte, got none for byte 0", refused("{\"a\":0}", "")},
      {"id*expected each of 0 to 331 once, got 332", refused(bytes + ",\"zz\":332}", "")},
      {"id*expected each of 0 to 331 once, got 5", refused(bytes + ",\"zz\":5}", "")},
      {"id*expected a whole number", refused(bytes + ",\"zz\":-1}", "")},
      {"tokens*expected each token once, got one of them twice",
       refused(bytes + ",\"er\":331}", "")},
      {"token*expected characters that stand for bytes", refused(bytes + ",\"a b\":331}", "")},
      {"token*expected characters that stand for bytes", refused(bytes + ",\"\\u65e5\":331}", "")},
      {"token*expected valid UTF-8", refused(bytes + ",\"\xff\":331}", "")},
      {"nothing after the last brace", refused(right + "}", "")},
      {"merges.txt: merge*expected two tokens in a line, got \"er\"", refused(right, "er\n")},
      {"expected two tokens in a line, got \"e r s\"", refused(right, "e r s\n")},
      {"expected two tokens in a line, got \"\"", refused(right, "#version: 0.2\n\ne r\n")},
      {"(byte 4)", refused(right, "e r\nq q\n")},
      {"expected tokens of the vocabulary, which give a token of it, got \"q q\"",
       refused(right, "q q\n")},
      {"expected each pair once, got \"e r\"", refused(right, "e r\ne r\n")},
      {"expected characters that stand for bytes", refused(right, "e r\r\n")},
  });
  refuses<LimitError>("")({
      {"token*expected 1 to 1024 bytes, got 0 bytes", refused(bytes + ",\"\":331}", "")},
      {"token*expected 1 to 1024 bytes, got 1025 bytes",
       refused(bytes + ",\"" + std::string(1025, 'a') + "\":331}", "")},
      {"token*expected at most 2048 bytes",
       refused(bytes + ",\"" + std::string(3000, 'a') + "\":331}", "")},
      {"merge*expected 1 to 1024 bytes, got 0 bytes", refused(right, " e\n")},
  });
  CHECK_THROWS_AS(data::BytePairVocabulary(folder / "none", merges), IoError);
  CHECK_THROWS_AS(data::BytePairVocabulary(vocab, folder.path()), IoError);
  const data::BytePairVocabulary bpe = small();
  CHECK_THROWS_TEXT(IndexError, "BytePairVocabulary: expected an index in [0, 331), got 331",
                    bpe.decode(tensor({331})));
  CHECK_THROWS_TEXT(IndexError, "BytePairVocabulary: *got -1", bpe.bytes(-1));
  CHECK_THROWS_TEXT(DTypeError, "BytePairVocabulary: expected tokens of int64, got float32",
                    bpe.decode(zeros({1})));
}
