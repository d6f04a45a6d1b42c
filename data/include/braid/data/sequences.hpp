#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include <braid/core/tree.hpp>

// Turns a long sequence of tokens into training data for models that predict the next token.
namespace braid::data {

/// Tokens, and the token that follows each of them.
struct NextToken {
  Tensor input;
  Tensor target;  ///< the shape of input: target[t] = input[t + 1]
  /// Returns the number of tokens, which training::progress counts.
  [[nodiscard]] std::int64_t samples() const { return input.numel(); }
  BRAID_FIELDS(input, target)
};

/// Windows of `length` tokens as separate items, for models that keep no state from one window to
/// the next. A dataset for DataLoader, whose batches are [batch, length].
///
/// Items    get(i): input tokens[i stride … i stride + length), target the same one token later;
///          views
/// Size     all windows that fit: (n - length - 1) / stride + 1 for n tokens
/// Throws   ShapeError unless the tokens are one-dimensional; DTypeError unless they are int64,
///          int32 or uint8; DeviceError unless they are in host memory; ArgumentError for length or
///          stride < 1, and for fewer than length + 1 tokens;
///          IndexError from get
class TokenWindows {
 public:
  TokenWindows(const Tensor& tokens, std::int64_t length, std::int64_t stride = 1);

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] NextToken get(std::int64_t index) const;
  [[nodiscard]] NextToken get_batch(std::span<const std::int64_t> indices) const;

 private:
  Tensor tokens_;
  std::int64_t length_, stride_, size_;
};

/// A sequence cut into `streams` parts of equal length, which are read in parallel, `length` tokens
/// at a time. For models that carry a state from window to window:
///
///   for (const auto& [input, target] : data::TokenStreams(tokens, 20, 35)) …
///
/// training::progress accepts it as a loader too.
/// abcdefghijkl in 3 streams is [4, 3], one column per stream. In windows of 2 that is
///
///   input  a e i     target  b f j     then  input  c g k     target  d h l
///          b f j             c g k
///
/// Items    get(i): input [length, streams], target of the same shape, one token later; views. The
///          last window has the remaining tokens (as in PyTorch's word_language_model: batchify and
///          get_batch). Tokens that do not fill a row of all streams are dropped
/// Size     the number of windows; one shorter window if a stream is shorter than `length`
/// Throws   ShapeError unless the tokens are one-dimensional; DTypeError unless they are int64,
///          int32 or uint8; ArgumentError for streams or length < 1, and for fewer than two tokens
///          per stream; IndexError from get
class TokenStreams {
 public:
  TokenStreams(const Tensor& tokens, std::int64_t streams, std::int64_t length);

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] NextToken get(std::int64_t index) const;
  /// Returns the tokens as [tokens per stream, streams].
  [[nodiscard]] const Tensor& columns() const noexcept { return columns_; }

  class iterator {
   public:
    using value_type = NextToken;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;
    [[nodiscard]] NextToken operator*() const { return streams_->get(index_); }
    iterator& operator++() {
      ++index_;
      return *this;
    }
    void operator++(int) { ++index_; }
    friend bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.index_ == b.index_;
    }

   private:
    friend class TokenStreams;
    iterator(const TokenStreams* streams, std::int64_t index) : streams_(streams), index_(index) {}
    const TokenStreams* streams_;
    std::int64_t index_;
  };
  [[nodiscard]] std::int64_t batches() const noexcept { return size_; }
  [[nodiscard]] iterator begin() const { return {this, 0}; }
  [[nodiscard]] iterator end() const { return {this, size_}; }

 private:
  Tensor columns_;
  std::int64_t length_, size_;
};

}  // namespace braid::data
