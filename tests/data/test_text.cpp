// Text: files, vocabularies of words and bytes, generated sentences.
#include <algorithm>
#include <cerrno>

#include "data_variable.hpp"
#include "items.hpp"
#include "nn/refused.hpp"
#include "support/sanitized.hpp"
#include "support/temporary.hpp"

using namespace braid;
using namespace braid::test;

namespace {

/// Returns the elements of a 1-d tensor of tokens.
Ids numbers(const Tensor& tokens) {
  CHECK((tokens.dtype() == DType::int64 && tokens.dim() == 1));
  return ids(tokens);
}
/// Returns every byte value, three times.
std::string all_bytes() {
  std::string text;
  for (int i = 0; i < 768; ++i) text += static_cast<char>(i * 7);
  return text;
}

}  // namespace

TEST_CASE("text: files are read whole, from the folder, BRAID_DATA or an absolute path",
          "[data][text]") {
  const TemporaryFolder folder;
  for (const std::string& text : {std::string("a\r\nb"), std::string(), all_bytes()}) {
    write_file(folder / "a.txt", text);
    CHECK(data::read_text("a.txt", folder.path()) == text);
    CHECK(data::read_text("a.txt", folder.path() + "/") == text);
    const DataVariable variable(folder.path().c_str());
    CHECK(data::read_text("a.txt") == text);
    CHECK(data::find_text("a.txt") == text);
    CHECK(!data::find_text("b.txt"));
    CHECK(data::read_text(folder / "a.txt", "/nowhere") == text);
  }
}

TEST_CASE("text: a missing file is named, and where it was looked for", "[data][text][errors]") {
  const TemporaryFolder folder;
  CHECK_THROWS_TEXT(IoError, ": expected a.txt, got no such file; looked in " + folder.path(),
                    data::read_text("a.txt", folder.path()));
  CHECK_THROWS_TEXT(IoError, "expected /nowhere/a.txt, got no such file",
                    data::read_text("/nowhere/a.txt"));
  CHECK_THROWS_TEXT(ArgumentError, "read_text: expected the name of a file, got an empty one",
                    data::read_text("", folder.path()));
  {
    const DataVariable variable((folder.path() + "/nowhere").c_str());
    CHECK_THROWS_TEXT(IoError, "looked in " + folder.path() + "/nowhere (from BRAID_DATA)",
                      data::read_text("a.txt"));
  }
  const DataVariable variable(nullptr);
  CHECK_THROWS_TEXT(IoError, "looked in no folder: none was given and BRAID_DATA is not set",
                    data::read_text("a.txt"));
  CHECK(!data::find_text("a.txt"));
  const auto number = [&](const std::string& file) {
    try {
      (void)data::read_text(file, folder.path());
    } catch (const IoError& e) {
      return e.error_number;
    }
    return -1;
  };
  CHECK(number("a.txt") == ENOENT);
  // a folder that is given must contain the file
  CHECK_THROWS_AS(data::find_text("a.txt", folder.path()), IoError);
  // the path is a folder, not a text file
  CHECK(number(".") != ENOENT);
  CHECK(number(".") != -1);
}

TEST_CASE("words: numbered by how often they come, each line with its end", "[data][text]") {
  const data::WordVocabulary words("b a\tb\r\n\n  c c c  \nd");
  CHECK(words.size() == 6);
  CHECK((words.word(0) == "<unk>" && words.word(1) == "<eos>" && words.word(2) == "c" &&
         words.word(3) == "b" && words.word(4) == "a" && words.word(5) == "d"));
  CHECK((words.id("b") == 3 && words.id("z") == 0 && words.id("") == 0 && words.id("<eos>") == 1));
  CHECK(numbers(words.encode("b a\tb\r\n\n  c c c  \nd")) == Ids{3, 4, 3, 1, 1, 2, 2, 2, 1, 5, 1});
  CHECK(numbers(words.encode("a z\n")) == Ids{4, 0, 1});
  CHECK(numbers(words.encode("a z")) == Ids{4, 0, 1});  // the last line gets an <eos> too
  CHECK(numbers(words.encode("\n\n")) == Ids{1, 1});
  CHECK(numbers(words.encode(" ")) == Ids{1});
  CHECK(numbers(words.encode("")).empty());
  CHECK(words.decode(words.encode("b a\tb\r\n\n  c c c  \nd")) == "b a b\n\nc c c\nd\n");
  CHECK(words.decode(words.encode("")).empty());
}

TEST_CASE("words: a limit keeps the commonest, others are unknown", "[data][text]") {
  const std::string text = "x y x z y x <unk>\nw <eos>";
  const data::WordVocabulary words(text, 4);
  CHECK(words.size() == 4);
  // <unk> and <eos> in the text become these tokens
  CHECK(numbers(words.encode(text)) == Ids{2, 3, 2, 0, 3, 2, 0, 1, 0, 1, 1});
  const data::WordVocabulary none(text, 2);
  CHECK(none.size() == 2);
  CHECK(numbers(none.encode("x <eos>")) == Ids{0, 1, 1});
  const data::WordVocabulary more(text, 1'000'000);  // more than the text has
  CHECK(more.size() == 6);
  CHECK(more.word(5) == "w");
  CHECK(data::WordVocabulary("", 10).size() == 2);
  CHECK(numbers(data::WordVocabulary("").encode("a\n")) == Ids{0, 1});
}

TEST_CASE("words: any bytes", "[data][text]") {
  const std::string text =
      "gr\xc3\xbc\xc3\x9f \xff\xfe gr\xc3\xbc\xc3\x9f " + std::string("n\0l", 3) + "\n";
  const data::WordVocabulary words(text);
  CHECK(words.size() == 5);
  CHECK(words.word(2) == "gr\xc3\xbc\xc3\x9f");
  CHECK(words.word(4) == std::string("n\0l", 3));
  CHECK(words.decode(words.encode(text)) == text);
  const std::string mixed = all_bytes();
  const data::WordVocabulary all(mixed);
  CHECK(numbers(all.encode(all.decode(all.encode(mixed)))) == numbers(all.encode(mixed)));
}

TEST_CASE("characters: bytes in ascending order, there and back", "[data][text]") {
  const data::CharVocabulary characters("hello\n");
  CHECK(characters.size() == 5);
  CHECK(characters.characters() == "\nehlo");
  CHECK(numbers(characters.encode("hole\n")) == Ids{2, 4, 3, 1, 0});
  CHECK(characters.decode(characters.encode("hole\n")) == "hole\n");
  CHECK(characters.decode(characters.encode("hell").reshape({2, 2})) == "hell");
  CHECK(numbers(characters.encode("")).empty());
  const data::CharVocabulary all(all_bytes());
  CHECK(all.size() == 256);
  CHECK(all.decode(all.encode(all_bytes())) == all_bytes());
  CHECK(numbers(all.encode("\xff")) == Ids{255});
  CHECK(data::CharVocabulary("").size() == 0);
}

TEST_CASE("text: what is no token, and no character, is refused", "[data][text][errors]") {
  const data::WordVocabulary words("a b");
  const data::CharVocabulary characters("abc");
  refuses<ArgumentError>("")({
      {"WordVocabulary: expected a limit of at least 2, <unk> and <eos>, got 1",
       [] { data::WordVocabulary("a", 1); }},
      {"WordVocabulary: *got -3", [] { data::WordVocabulary("a", -3); }},
      {"CharVocabulary: expected one of its 3 characters, got byte 195 at position 2",
       [&] { return characters.encode("ab\xc3\xa4"); }},
      {"of its 0 characters, got byte 97 at position 0",
       [] { return data::CharVocabulary("").encode("a"); }},
  });
  refuses<IndexError>("")({
      {"WordVocabulary: expected an index in [0, 4), got 4", [&] { return words.word(4); }},
      {"WordVocabulary: *got -1", [&] { return words.word(-1); }},
      {"WordVocabulary: expected an index in [0, 4), got 4",
       [&] { return words.decode(arange(5)); }},
      {"CharVocabulary: expected an index in [0, 3), got 3",
       [&] { return characters.decode(arange(4)); }},
  });
  refuses<DTypeError>("")({
      {"WordVocabulary: expected tokens of int64, got float32",
       [&] { return words.decode(zeros({2})); }},
      {"CharVocabulary: expected tokens of int64, got float32",
       [&] { return characters.decode(zeros({2})); }},
  });
}

TEST_CASE("text: generated sentences are the same everywhere, and can be learned from",
          "[data][text]") {
  const std::string text = data::synthetic_text(500);
  CHECK(text == data::synthetic_text(500, 0));
  CHECK(text != data::synthetic_text(500, 1));
  CHECK(text.starts_with(data::synthetic_text(40)));
  CHECK(data::synthetic_text(0).empty());
  CHECK_THROWS_TEXT(ArgumentError, "synthetic_text: expected sentences >= 0, got -1",
                    data::synthetic_text(-1));
  CHECK_THROWS_TEXT(ArgumentError,
                    "synthetic_text: expected sentences of 0 to *, got 9223372036854775807",
                    data::synthetic_text(std::numeric_limits<std::int64_t>::max()));
#if !BRAID_SANITIZED  // a sanitizer ends the process if such an allocation fails
  CHECK_THROWS_TEXT(OutOfMemoryError, "(a text of 36028797018963968 sentences)",
                    data::synthetic_text(std::int64_t{1} << 55));
#endif
  CHECK(data::synthetic_text(2) ==
        "the queens follow the paths .\nthe singer reads the letters again .\n");
  const data::WordVocabulary words(text);
  CHECK(words.size() > 100);
  CHECK(words.size() == data::WordVocabulary(data::synthetic_text(5000)).size());
  const std::vector<std::int64_t> tokens = numbers(words.encode(text));
  CHECK(std::count(tokens.begin(), tokens.end(), 1) == 500);
  CHECK(words.decode(words.encode(text)) == text);
}

TEST_CASE("text: the real corpus", "[data][text]") {
  const std::optional<std::string> text = data::find_text("wikitext2-test.txt");
  if (!text) {
    WARN("skipped: BRAID_DATA names no folder with wikitext2-test.txt");
    return;
  }
  const data::WordVocabulary words(*text);
  CHECK(words.size() == 14143);
  const Tensor tokens = words.encode(*text);
  CHECK(tokens.numel() == 245569);
  const std::vector<std::int64_t> list = numbers(tokens);
  CHECK(std::count(list.begin(), list.end(), 0) == 15218);
  CHECK(std::count(list.begin(), list.end(), 1) == 4358);
}
