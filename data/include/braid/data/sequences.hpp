#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include <braid/core/state_dict.hpp>
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
/// Items     get(i): input tokens[i stride … i stride + length), target the same one token later;
///           views
/// Size      all windows that fit: (n - length - 1) / stride + 1 for n tokens
/// Throws    ShapeError unless the tokens are one-dimensional; DTypeError unless they are int64,
///           int32 or uint8; DeviceError unless they are in host memory; ArgumentError for length
///           or stride < 1, and for fewer than length + 1 tokens; IndexError from get
///
///     const data::TokenWindows windows(tokens, 64);
///     data::DataLoader loader(windows, {.batch_size = 32, .shuffle = true});
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
///     nn::LSTM lstm(32, 64);
///     nn::Embedding embedding(1000, 32);
///     nn::LSTMState state;
///     for (const auto& [input, target] : data::TokenStreams(tokens, 20, 35)) {
///       const auto output = lstm(embedding(input), state);
///       state = {output.h_n.detach(), output.c_n.detach()};
///     }
///
/// It is a loader too, for training::progress and training::Checkpoint: each begin() starts the
/// next epoch (0, 1, …), and after load_state() the next one continues where state() was taken. A
/// pass over a const TokenStreams is no epoch and always begins with the first window. If a run is
/// to be resumed in the middle of an epoch, the checkpoint must hold the model's state as well.
/// abcdefghijkl in 3 streams is [4, 3], one column per stream. In windows of 2 that is
///
///   input  a e i     target  b f j     then  input  c g k     target  d h l
///          b f j             c g k
///
/// Items     get(i): input [length, streams], target of the same shape, one token later; views. The
///           last window has the remaining tokens (as in PyTorch's word_language_model: batchify
///           and get_batch). Tokens that do not fill a row of all streams are dropped
/// Size      the number of windows; one shorter window if a stream is shorter than `length`
/// Throws    ShapeError unless the tokens are one-dimensional; DTypeError unless they are int64,
///           int32 or uint8; ArgumentError for streams or length < 1, and for fewer than two tokens
///           per stream; IndexError from get; ArgumentError from load_state for a dict that is not
///           such a state and, in the middle of an epoch, unless the windows are the same
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
      if (mine_ != nullptr) mine_->moved_to(epoch_, index_);
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.index_ == b.index_;
    }

   private:
    friend class TokenStreams;
    iterator(const TokenStreams* streams, std::int64_t index) : streams_(streams), index_(index) {}
    iterator(TokenStreams* streams, std::int64_t epoch, std::int64_t index)
        : streams_(streams), index_(index), mine_(streams), epoch_(epoch) {
      mine_->moved_to(epoch_, index_);
    }
    const TokenStreams* streams_;
    std::int64_t index_;
    TokenStreams* mine_ = nullptr;  // whose position is moved; null in a const pass
    std::int64_t epoch_ = 0;
  };
  [[nodiscard]] std::int64_t batches() const noexcept { return size_; }
  [[nodiscard]] iterator begin() {
    const iterator first(this, epoch_, first_);
    ++epoch_;
    first_ = 0;
    return first;
  }
  [[nodiscard]] iterator begin() const { return {this, 0}; }
  [[nodiscard]] iterator end() const { return {this, size_}; }

  /// Returns the epoch that the next begin() starts.
  [[nodiscard]] std::int64_t epoch() const noexcept { return epoch_; }
  /// Sets the epoch that the next begin() starts. A position in that epoch, which load_state() has
  /// restored, stays. Throws ArgumentError if the epoch is < 0, or so large that the count of
  /// windows could overflow.
  void set_epoch(std::int64_t epoch);
  /// Returns the number of windows that the next begin() skips after load_state(); else 0.
  [[nodiscard]] std::int64_t first_batch() const noexcept { return first_; }
  /// Returns the number of windows since epoch 0. Earlier epochs count as complete.
  [[nodiscard]] std::int64_t steps() const noexcept { return at_.epoch * size_ + at_.batch; }
  /// Returns the position of the iteration: the epoch and the windows returned; and the length of
  /// the windows, the number of streams and of tokens per stream.
  [[nodiscard]] StateDict state() const;
  /// Makes the next begin() continue where state() was taken. Changes nothing if it throws.
  void load_state(std::span<const StateDict::value_type> dict);

 private:
  struct Position {
    std::int64_t epoch = 0, batch = 0;  // batch: the windows that were returned
  };
  /// The iteration of an epoch has arrived at the window `index`, or at the end.
  void moved_to(std::int64_t epoch, std::int64_t index) noexcept {
    at_ = index < size_ ? Position{epoch, index + 1} : Position{epoch + 1, 0};
  }

  Tensor columns_;
  std::int64_t length_, size_;
  Position at_;
  std::int64_t epoch_ = 0, first_ = 0;  // of the next begin()
};

}  // namespace braid::data
