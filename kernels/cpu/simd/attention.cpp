#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/attention_backward.hpp"
#include "cpu/simd/attention_forward.hpp"

// Attention. The forward pass is split into tiles of queries, the backward pass into heads of
// keys, each with its query heads; one thread computes each. The split depends on the shape alone,
// and on the lengths of sequences.
namespace braid::cpu::BRAID_ISA {

namespace {

/// The tiles of sequences of several lengths, with a few that do not exist. Those of sequence b
/// begin with number starts[b] / kSide + b: it has at most one number more than tiles.
struct TilesOfSequences {
  const AttentionSequences& sequences;
  std::int64_t batch;
  [[nodiscard]] std::int64_t count() const { return sequences.q_rows / kSide + batch; }
  [[nodiscard]] std::int64_t first_of(std::int64_t b) const {
    return sequences.q_starts[b] / kSide + b;
  }
  /// The sequence of a tile.
  [[nodiscard]] std::int64_t at(std::int64_t tile) const {
    std::int64_t from = 0, end = batch;
    while (end - from > 1) {
      const std::int64_t middle = from + (end - from) / 2;
      (first_of(middle) <= tile ? from : end) = middle;
    }
    return from;
  }
};

}  // namespace

void attention(const AttentionArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("attention", "a floating-point dtype", args.dtype);
  if (args.batch <= 0 || args.heads <= 0 || args.queries <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    if (args.sequences.q_starts == nullptr) {
      const std::int64_t tiles = (args.queries + kSide - 1) / kSide;
      const auto job = [&](std::int64_t n) {
        attention_of_queries<E>(args, sequence_of(args, n / tiles / args.heads),
                                n / tiles % args.heads, n % tiles * kSide);
      };
      parallel_for(stream, args.batch * args.heads * tiles, job);
    } else {
      const TilesOfSequences tiles{args.sequences, args.batch};
      const auto job = [&](std::int64_t n) {
        const std::int64_t h = n / tiles.count(), tile = n % tiles.count(), b = tiles.at(tile),
                           first = (tile - tiles.first_of(b)) * kSide;
        const SequenceRows s = sequence_of(args, b);
        if (first < s.queries) attention_of_queries<E>(args, s, h, first);
      };
      parallel_for(stream, args.heads * tiles.count(), job);
    }
    return true;
  });
}

void attention_backward(const AttentionBackwardArgs& args, Stream& stream) {
  const AttentionArgs& f = args.forward;
  if (f.dtype < DType::float16) fail_dtype("attention_backward", "a floating-point dtype", f.dtype);
  if (f.batch <= 0 || f.heads <= 0) return;
  with_floating(f.dtype, [&]<class E>() {
    const std::int64_t key_heads = f.heads / f.group;
    const auto job = [&](std::int64_t n) {
      attention_backward_of_group<E>(args, n / key_heads, n % key_heads);
    };
    parallel_for(stream, f.batch * key_heads, job);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
