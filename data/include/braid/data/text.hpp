#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <braid/core/tensor.hpp>

// Text as numbers: a file becomes a string, a vocabulary makes int64 tokens of it, sequences.hpp
// cuts these into what a model reads. Text is bytes: nothing knows about encodings, and what is
// decoded has the bytes that were encoded.
namespace braid::data {

/// All bytes of a file. Looks in `folder`, or, if that is empty, in the folder that the environment
/// variable BRAID_DATA names; an absolute path needs neither.
/// Throws  IoError, with error_number ENOENT and where it looked if there is no such file;
///         ArgumentError for an empty name
[[nodiscard]] std::string read_text(const std::string& file, const std::string& folder = {});
/// The same; or none, if no folder is named and the file is not where BRAID_DATA says, for programs
/// that go on with synthetic_text then.
[[nodiscard]] std::optional<std::string> find_text(const std::string& file,
                                                   const std::string& folder = {});

/// English-like sentences made by a program, for machines without data: one a line, words and full
/// stops separated by spaces. The verb agrees with a subject some words before it and the object
/// follows from the verb, so that there is something to learn beyond how often a word comes. A
/// function of (sentences, seed) alone, the same on every machine; more sentences begin with those
/// of fewer.
/// Throws  ArgumentError for a negative number, and for more than a string can hold;
///         OutOfMemoryError
[[nodiscard]] std::string synthetic_text(std::int64_t sentences, std::uint64_t seed = 0);

/// The commonest words of a text. A word is what stands between white space (ASCII's), and each
/// line, the last too, ends with one more, `<eos>`. Every other word is `<unk>`. As PyTorch's
/// word_language_model counts; there all words are kept, and numbered as they come.
///
/// Numbers   0 `<unk>`, 1 `<eos>`, then the words by how often they come, the earlier first where
///           equal; a `<unk>` or `<eos>` in the text is that word
/// Throws    ArgumentError for a limit below 2
class WordVocabulary {
 public:
  static constexpr std::string_view kUnknown = "<unk>", kEndOfLine = "<eos>";

  /// At most `limit` words, those two included.
  explicit WordVocabulary(std::string_view text,
                          std::int64_t limit = std::numeric_limits<std::int64_t>::max());

  [[nodiscard]] std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(words_.size());
  }
  /// The word's number, that of `<unk>` if it has none.
  [[nodiscard]] std::int64_t id(std::string_view word) const;
  /// Throws IndexError.
  [[nodiscard]] const std::string& word(std::int64_t id) const;
  /// int64 [words and line ends], in host memory.
  [[nodiscard]] Tensor encode(std::string_view text) const;
  /// The words, separated by spaces; `<eos>` ends the line. Throws DTypeError unless the tokens are
  /// int64, IndexError.
  [[nodiscard]] std::string decode(const Tensor& tokens) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> ids_;
};

/// The bytes of a text, numbered in ascending order; in ASCII they are its characters.
class CharVocabulary {
 public:
  explicit CharVocabulary(std::string_view text);

  [[nodiscard]] std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(characters_.size());
  }
  /// Ascending.
  [[nodiscard]] const std::string& characters() const noexcept { return characters_; }
  /// int64 [bytes], in host memory. Throws ArgumentError for a byte that the vocabulary's text did
  /// not have.
  [[nodiscard]] Tensor encode(std::string_view text) const;
  /// Throws DTypeError unless the tokens are int64, IndexError.
  [[nodiscard]] std::string decode(const Tensor& tokens) const;

 private:
  std::string characters_;
  std::vector<std::int64_t> ids_;  // of 256 bytes, -1 for one that is not there
};

}  // namespace braid::data
