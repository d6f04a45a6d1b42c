#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <braid/core/tensor.hpp>

namespace braid::data {

/// GPT-2's tokens: byte pair encoding of bytes. Text is first split into words, numbers, other
/// characters and spaces. Then, within each piece, the pair of neighbours that is first in the list
/// of merges becomes one token, until no pair is in the list. Each byte is a token too, so any text
/// can be encoded, and decodes to the same bytes.
///
/// Files     vocab.json and merges.txt, as Hugging Face's hub has them for GPT-2. In both, bytes
///           that are no printable character of Latin-1 are characters from U+0100 on: `Ġ` is a
///           space
/// Ids       those of vocab.json
/// Limits    64 MiB for each file, 1,024 bytes for each token
/// Throws    IoError, FormatError and LimitError (path, byte, field, expected, got) for files that
///           cannot be read; that lack a byte, have ids other than 0 … n - 1, or a token twice; or
///           whose merges are of tokens, or give one, that vocab.json lacks
/// Source    Radford et al. 2019, Language Models are Unsupervised Multitask Learners; Sennrich et
///           al. 2016, arXiv:1508.07909. Letters and numbers are those of Unicode 17. A byte that
///           is not part of valid UTF-8 counts as a character that is neither
///
///     const data::BytePairVocabulary bytes;  // without merges
///     print(bytes.decode(bytes.encode("any text")));
class BytePairVocabulary {
 public:
  static constexpr std::string_view kEndOfText = "<|endoftext|>";

  /// Has the 256 bytes, with the ids that they have in GPT-2's vocabulary, and `<|endoftext|>`,
  /// which is 256.
  BytePairVocabulary();
  BytePairVocabulary(const std::string& vocab_json, const std::string& merges_txt);

  [[nodiscard]] std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(tokens_.size());
  }
  /// Returns the id of `<|endoftext|>`, if the vocabulary has it.
  [[nodiscard]] std::optional<std::int64_t> end_of_text() const noexcept { return end_; }
  /// Returns the bytes of a token. Throws IndexError.
  [[nodiscard]] const std::string& bytes(std::int64_t id) const;

  /// Returns the ids as int64 [tokens], in host memory. With `special` each `<|endoftext|>` in the
  /// text is that token, else it is text like any other.
  [[nodiscard]] Tensor encode(std::string_view text, bool special = false) const;
  /// Returns the bytes of all tokens. Throws DTypeError unless the tokens are int64, IndexError.
  [[nodiscard]] std::string decode(const Tensor& tokens) const;

 private:
  struct Merge {
    std::int64_t rank, token;
  };
  using Ids = std::unordered_map<std::string_view, std::int64_t>;
  /// Sets tokens_; returns their ids.
  [[nodiscard]] Ids read_tokens(const std::string& path);
  void read_merges(const std::string& path, const Ids& ids);
  [[nodiscard]] const Merge* merge_of(std::int64_t first, std::int64_t second) const;
  void encode_plain(std::string_view text, std::vector<std::int64_t>& ids) const;
  void encode_piece(std::string_view piece, std::vector<std::int64_t>& ids) const;

  std::vector<std::string> tokens_;
  std::array<std::int64_t, 256> of_byte_{};
  std::unordered_map<std::uint64_t, Merge> merges_;  // by (first token << 32) | second token
  std::optional<std::int64_t> end_;
};

}  // namespace braid::data
