#pragma once
// Tokens from the command line and from files.
#include <algorithm>
#include <charconv>

#include <braid/braid.hpp>

namespace gpt2 {

using namespace braid;

/// Returns the numbers of a text, separated by spaces or commas, as tokens [n]. Throws
/// ArgumentError for anything but tokens in [0, vocabulary).
inline Tensor parse_tokens(std::string_view text, std::int64_t vocabulary) {
  std::vector<std::int64_t> ids;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,\n"), text.size()));
    if (text.empty()) return tensor(ids, {.dtype = DType::int64});
    const std::string_view word = text.substr(0, text.find_first_of(" ,\n"));
    std::int64_t id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size() || id < 0 || id >= vocabulary)
      throw ArgumentError(str("gpt2: expected tokens from 0 to ", vocabulary - 1, ", got ", word));
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

/// Reads tokens [n]: those of a .npy file of integers, the 16-bit numbers of a .bin file
/// (little-endian, as nanoGPT writes them), or those of a text, in which `<|endoftext|>` is a
/// token. Throws IoError, FormatError, and IndexError unless all are in [0, vocabulary).
inline Tensor read_tokens(const std::string& file, const data::BytePairVocabulary& bpe,
                          std::int64_t vocabulary) {
  Tensor tokens;
  if (file.ends_with(".npy")) {
    tokens = load_npy(file).flatten();
    if (tokens.dtype() != DType::int64 && tokens.dtype() != DType::int32 &&
        tokens.dtype() != DType::uint8)
      throw DTypeError(str("gpt2: ", file, ": expected integers, got ", tokens.dtype()));
    tokens = tokens.to(DType::int64);
  } else {
    const std::string path = file.starts_with('/') ? file : "./" + file;
    const std::string bytes =
        data::read_text(path.substr(path.rfind('/') + 1), path.substr(0, path.rfind('/') + 1));
    if (!file.ends_with(".bin")) return bpe.encode(bytes, true);
    if (bytes.size() % 2 != 0)
      throw ArgumentError(
          str("gpt2: ", file, ": expected 16-bit numbers, got ", bytes.size(), " bytes"));
    tokens = zeros({static_cast<std::int64_t>(bytes.size() / 2)}, {.dtype = DType::int64});
    auto* to = tokens.data<std::int64_t>();
    for (std::size_t i = 0; i < bytes.size() / 2; ++i)
      to[i] = static_cast<unsigned char>(bytes[2 * i]) +
              256 * static_cast<unsigned char>(bytes[2 * i + 1]);
  }
  if (tokens.numel() > 0)
    for (const Tensor& end : {tokens.min(), tokens.max()})
      if (const auto id = end.item<std::int64_t>(); id < 0 || id >= vocabulary)
        throw IndexError(
            str("gpt2: ", file, ": expected tokens from 0 to ", vocabulary - 1, ", got ", id));
  return tokens;
}

}  // namespace gpt2
