#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/state_dict.hpp>
#include <braid/core/tensor.hpp>

// Text as tokens: read_text reads a file, a vocabulary converts the text to int64 tokens, and
// sequences.hpp cuts these into the inputs of a model. Text is bytes, in any encoding: decoded
// words and characters have the bytes that were encoded.
namespace braid::data {

/// Reads all bytes of a file. Looks in `folder` or, if that is empty, in the folder that the
/// environment variable BRAID_DATA names. An absolute path needs neither.
///
/// Throws    IoError; if there is no such file, its error_number is ENOENT and its text names the
///           folder; ArgumentError for an empty name
[[nodiscard]] std::string read_text(const std::string& file, const std::string& folder = {});
/// The same, but returns nothing if `folder` is empty and the folder in BRAID_DATA lacks the file,
/// so that a program can fall back to synthetic_text.
[[nodiscard]] std::optional<std::string> find_text(const std::string& file,
                                                   const std::string& folder = {});

/// Generates English-like sentences, for machines without data: one per line, with words and full
/// stops separated by spaces. The verb agrees with a subject some words before it, and the object
/// depends on the verb, so that a model can learn more than word frequencies. The text depends only
/// on (sentences, seed), and is the same on every machine. A longer text begins with the shorter
/// ones.
///
/// Throws    ArgumentError for a negative number, and for more than a string can hold;
///           OutOfMemoryError
[[nodiscard]] std::string synthetic_text(std::int64_t sentences, std::uint64_t seed = 0);

/// The most frequent words of a text. Words are separated by ASCII white space. Each line, also the
/// last one, ends with one more word, `<eos>`. Every other word is `<unk>`. PyTorch's
/// word_language_model splits text in the same way, but keeps all words, in the order of their
/// first occurrence.
///
/// Ids       0 `<unk>`, 1 `<eos>`, then the words by falling frequency, equally frequent ones in
///           the order of their first occurrence; a `<unk>` or `<eos>` in the text is that word
/// Throws    ArgumentError for a limit below 2
///
///     const std::string text = data::synthetic_text(1000);
///     const data::WordVocabulary words(text, 10000);
///     const Tensor ids = words.encode(text);
///     print(words.decode(ids.slice(0, 0, 10)));
class WordVocabulary {
 public:
  static constexpr std::string_view kUnknown = "<unk>", kEndOfLine = "<eos>";

  /// Keeps at most `limit` words, including these two.
  explicit WordVocabulary(std::string_view text,
                          std::int64_t limit = std::numeric_limits<std::int64_t>::max());

  [[nodiscard]] std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(words_.size());
  }
  /// Returns the word's id, or that of `<unk>` if it has none.
  [[nodiscard]] std::int64_t id(std::string_view word) const;
  /// Returns the word of an id. Throws IndexError.
  [[nodiscard]] const std::string& word(std::int64_t id) const;
  /// Returns the ids as int64 [words and line ends], in host memory.
  [[nodiscard]] Tensor encode(std::string_view text) const;
  /// Returns the words, separated by spaces; `<eos>` ends a line. Throws DTypeError unless the
  /// tokens are int64, IndexError.
  [[nodiscard]] std::string decode(const Tensor& tokens) const;

 private:
  std::vector<std::string> words_;
  braid::detail::NameIndex ids_;
};

/// The distinct bytes of a text, with ids in ascending order. In ASCII they are its characters.
class CharVocabulary {
 public:
  explicit CharVocabulary(std::string_view text);

  [[nodiscard]] std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(characters_.size());
  }
  /// Returns the characters in ascending order.
  [[nodiscard]] const std::string& characters() const noexcept { return characters_; }
  /// Returns the ids as int64 [bytes], in host memory. Throws ArgumentError for a byte that the
  /// vocabulary does not have.
  [[nodiscard]] Tensor encode(std::string_view text) const;
  /// Returns the text. Throws DTypeError unless the tokens are int64, IndexError.
  [[nodiscard]] std::string decode(const Tensor& tokens) const;

 private:
  std::string characters_;
  std::vector<std::int64_t> ids_;  // for each of 256 bytes; -1 if the vocabulary lacks it
};

}  // namespace braid::data
