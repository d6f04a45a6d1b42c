#pragma once
// Every collective of a communicator against a plain loop, for ranks as threads and as processes.
#include <algorithm>
#include <string>
#include <vector>

#include <braid/braid.hpp>

namespace braid::test {

inline void expect(bool ok, const std::string& what) {
  if (!ok) throw Error("expected " + what);
}

/// Throws unless both have the same elements.
inline void same(const Tensor& got, const Tensor& want) {
  expect(got.dtype() == want.dtype() && got.shape() == want.shape(),
         str(want.dtype(), " ", want.shape(), ", got ", got.dtype(), " ", got.shape()));
  const auto a = got.to_vector<double>(), b = want.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && (a[i] == a[i] || b[i] == b[i]))
      expect(false, str(b[i], " at ", i, " of ", want.dtype(), " ", want.shape(), ", got ", a[i]));
}

/// Small whole numbers, so that every sum and product is exact.
inline Tensor rank_values(int rank, std::int64_t n, DType dtype) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    v[static_cast<std::size_t>(i)] = dtype == DType::bool_
                                         ? static_cast<float>((i + rank) % 2)
                                         : static_cast<float>((i * 7 + rank * 3) % 5 + 1);
  return tensor(v).to(dtype);
}

inline Tensor reduced_values(parallel::ReduceOp op, int ranks, std::int64_t n, DType dtype) {
  using parallel::ReduceOp;
  std::vector<double> result = rank_values(0, n, dtype).to_vector<double>();
  for (int r = 1; r < ranks; ++r) {
    const std::vector<double> v = rank_values(r, n, dtype).to_vector<double>();
    for (std::size_t i = 0; i < v.size(); ++i) {
      double& x = result[i];
      switch (op) {
        case ReduceOp::product: x *= v[i]; break;
        case ReduceOp::min: x = std::min(x, v[i]); break;
        case ReduceOp::max: x = std::max(x, v[i]); break;
        default: x += v[i];
      }
    }
  }
  if (op == ReduceOp::mean)
    for (double& x : result) x /= ranks;
  return tensor(result).to(dtype);
}

/// Throws unless all results are right. The sizes are below and above the limit up to which sums
/// are gathered and added on each rank.
inline void check_collectives(parallel::ProcessCommunicator& c) {
  using parallel::ReduceOp;
  const int n = c.size(), root = n - 1;
  const auto from = [&](const Tensor& t) { return t.to(c.device(), {}, true); };
  for (const DType dtype : {DType::bool_, DType::uint8, DType::int32, DType::int64, DType::float16,
                            DType::bfloat16, DType::float32, DType::float64})
    for (const std::int64_t size : {0, 1, 7, 32'769}) {
      const Tensor own = from(rank_values(c.rank(), size, dtype));
      std::vector<Tensor> all, blocks;
      for (int r = 0; r < n; ++r) {
        all.push_back(rank_values(r, size, dtype));
        blocks.push_back(rank_values(r, size * n, dtype).narrow(0, c.rank() * size, size));
      }
      Tensor t = from(own);
      c.broadcast(t, root);
      same(t, rank_values(root, size, dtype));
      Tensor gathered = zeros({size * n}, {.device = c.device(), .dtype = dtype});
      c.all_gather(gathered, own);
      same(gathered, cat(all, 0));
      // rank r sends its block b to rank b
      const Tensor sent = from(rank_values(c.rank(), size * n, dtype));
      Tensor exchanged = zeros({size * n}, {.device = c.device(), .dtype = dtype});
      c.all_to_all(exchanged, sent);
      same(exchanged, cat(blocks, 0));
      if (dtype == DType::bool_) continue;
      for (const ReduceOp op :
           {ReduceOp::sum, ReduceOp::mean, ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
        if (op == ReduceOp::mean && !is_floating(dtype)) continue;
        t = from(own);
        c.all_reduce(t, op);
        same(t, reduced_values(op, n, size, dtype));
        t = from(own);
        c.reduce(t, root, op);
        same(t, c.rank() == root ? reduced_values(op, n, size, dtype) : own);
        Tensor part = zeros({size}, {.device = c.device(), .dtype = dtype});
        c.reduce_scatter(part, sent, op);
        same(part, reduced_values(op, n, size * n, dtype).narrow(0, c.rank() * size, size));
      }
    }
  c.barrier();
}

/// Sums of many pieces, of which the last is short; larger than what check_collectives has.
inline void check_large_sums(parallel::ProcessCommunicator& c) {
  constexpr std::int64_t kMany = 1'500'003;
  for (const parallel::ReduceOp op : {parallel::ReduceOp::sum, parallel::ReduceOp::max}) {
    const Tensor t = rank_values(c.rank(), kMany, DType::float32).to(c.device());
    c.all_reduce(t, op);
    same(t, reduced_values(op, c.size(), kMany, DType::float32));
  }
}

/// Uneven all_to_all, messages and groups; four ranks.
inline void check_messages_and_groups(parallel::ProcessCommunicator& c) {
  const int me = c.rank(), n = c.size();
  const auto count = [](int i) { return static_cast<std::size_t>(i); };
  // rank r sends r + 1 elements of value 10 r + to
  std::vector<std::int64_t> in_counts(count(n), me + 1), out_counts;
  std::vector<float> in, want;
  for (int r = 0; r < n; ++r) {
    out_counts.push_back(r + 1);
    in.insert(in.end(), count(me + 1), static_cast<float>(10 * me + r));
    want.insert(want.end(), count(r + 1), static_cast<float>(10 * r + me));
  }
  Tensor out = zeros({static_cast<std::int64_t>(want.size())});
  c.start_all_to_all(out, tensor(in), out_counts, in_counts).wait();
  same(out, tensor(want));

  // a ring, where every rank sends first, small and large messages
  for (const std::int64_t size : {0, 3, 1'000'000}) {
    Tensor got = zeros({size});
    const parallel::Work sent = c.start_send(full({size}, 1.0 + me), (me + 1) % n, 7);
    c.recv(got, (me + n - 1) % n, 7);
    sent.wait();
    same(got, full({size}, 1.0 + (me + n - 1) % n));
  }

  // groups of even and odd ranks, in reverse order; the last rank is in none
  const auto part = c.split(me == n - 1 ? -1 : me % 2, -me);
  expect((part == nullptr) == (me == n - 1), "no communicator for a negative color");
  if (part) {
    double sum = 0;
    int size = 0, after = 0;
    for (int r = me % 2; r < n - 1; r += 2) {
      sum += r;
      ++size;
      after += r > me ? 1 : 0;
    }
    expect(part->size() == size && part->rank() == after, "ranks ordered by key");
    Tensor t = full({2}, 1.0 * me);
    part->all_reduce(t);
    same(t, full({2}, sum));
  }
  c.barrier();
}

}  // namespace braid::test
