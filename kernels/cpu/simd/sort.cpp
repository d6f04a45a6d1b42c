#include <braid/core/kernel_args/sort.hpp>

#include "cpu/runtime/parallel.hpp"
#include "cpu/runtime/scratch.hpp"
#include "cpu/simd/elements.hpp"

// Stable sorts of rows by keys: unsigned numbers that are ordered as the elements. A row is sorted
// by the bytes of its keys from the last to the first (least significant digit first, Knuth vol. 3,
// 5.2.5), skipping bytes that are the same in all keys. Where only few elements are requested, the
// k-th key is found first, byte by byte from the top.
namespace braid::cpu::BRAID_ISA {
namespace {

struct Entry {
  std::uint64_t key;
  std::int64_t place;
};

constexpr std::int64_t kInsertion = 32, kTileElements = 16 * 1024;
constexpr int kDigits = 256;

/// Bits whose unsigned order is that of the elements: NaNs are last and all equal, -0 equals 0.
template <class U, class S> BRAID_INLINE U ordered_bits(S x) {
  constexpr U top = U(1) << (sizeof(U) * 8 - 1);
  if (x != x) return ~U(0);
  const U u = __builtin_bit_cast(U, x == 0 ? S(0) : x);
  return (u & top) != 0 ? ~u : u | top;
}
template <class E> BRAID_INLINE std::uint64_t key_of(typename E::T x) {
  if constexpr (E::kDType == DType::float64) return ordered_bits<std::uint64_t>(x);
  else if constexpr (E::kDType == DType::float32) return ordered_bits<std::uint32_t>(x);
  else if constexpr (kFloating<E>) return ordered_bits<std::uint32_t>(E::to_float(x));
  else if constexpr (E::kDType == DType::int64)
    return static_cast<std::uint64_t>(x) ^ (std::uint64_t{1} << 63);
  else if constexpr (E::kDType == DType::int32)
    return static_cast<std::uint32_t>(x) ^ (std::uint32_t{1} << 31);
  else return x;
}

BRAID_INLINE int digit(std::uint64_t key, int byte) {
  return static_cast<int>(key >> (8 * byte) & 0xffu);
}

void insertion_sort(Entry* a, std::int64_t n) {
  for (std::int64_t i = 1; i < n; ++i) {
    const Entry e = a[i];
    std::int64_t j = i;
    for (; j > 0 && a[j - 1].key > e.key; --j) a[j] = a[j - 1];
    a[j] = e;
  }
}

/// Sorts a; `other` has room for n. Returns the buffer that holds the result.
Entry* sort_entries(Entry* a, Entry* other, std::int64_t n) {
  if (n <= kInsertion) {
    insertion_sort(a, n);
    return a;
  }
  std::int64_t count[8][kDigits] = {};
  for (std::int64_t i = 0; i < n; ++i)
    for (int b = 0; b < 8; ++b) ++count[b][digit(a[i].key, b)];
  for (int b = 0; b < 8; ++b) {
    if (count[b][digit(a[0].key, b)] == n) continue;
    std::int64_t start = 0;
    for (std::int64_t& c : count[b]) {
      const std::int64_t size = c;
      c = start;
      start += size;
    }
    for (std::int64_t i = 0; i < n; ++i) other[count[b][digit(a[i].key, b)]++] = a[i];
    Entry* const done = other;
    other = a;
    a = done;
  }
  return a;
}

/// Keeps the k smallest of a, and the earlier of equal ones, in the order of their indices.
void select_smallest(Entry* a, std::int64_t n, std::int64_t k) {
  std::uint64_t kth = 0, mask = 0;  // the known bytes of the k-th key
  std::int64_t left = k;            // its rank among the keys with these bytes
  for (int b = 7; b >= 0; --b) {
    std::int64_t count[kDigits] = {};
    for (std::int64_t i = 0; i < n; ++i)
      if ((a[i].key & mask) == kth) ++count[digit(a[i].key, b)];
    int d = 0;
    for (; left > count[d]; ++d) left -= count[d];
    kth |= static_cast<std::uint64_t>(d) << (8 * b);
    mask |= std::uint64_t{0xff} << (8 * b);
  }
  std::int64_t to = 0;
  for (std::int64_t i = 0; to < k; ++i) {
    if (a[i].key > kth || (a[i].key == kth && left-- <= 0)) continue;
    a[to++] = a[i];
  }
}

template <class E> void sort_row(const SortArgs& args, std::int64_t row) {
  using T = typename E::T;
  const std::int64_t n = args.n, k = args.k;
  auto* a = static_cast<Entry*>(scratch(2 * static_cast<std::size_t>(n) * sizeof(Entry)));
  const T* x = static_cast<const T*>(args.x) + row * n;
  constexpr std::uint64_t all = sizeof(T) == 8 ? ~std::uint64_t{0} : 0xffffffffu;
  const std::uint64_t turn = args.descending ? all : 0;
  for (std::int64_t i = 0; i < n; ++i) a[i] = {key_of<E>(x[i]) ^ turn, i};
  const bool few = n > kInsertion && k < n / 4;
  if (few) select_smallest(a, n, k);
  const Entry* const sorted = sort_entries(a, a + n, few ? k : n);
  T* values = static_cast<T*>(args.values) + row * k;
  std::int64_t* index = args.index + row * k;
  for (std::int64_t i = 0; i < k; ++i) {
    values[i] = x[sorted[i].place];
    index[i] = sorted[i].place;
  }
}

}  // namespace

void sort(const SortArgs& args, Stream& stream) {
  if (args.rows <= 0 || args.k <= 0) return;
  with_element(args.dtype, [&]<class E>() {
    const std::int64_t group = args.n >= kTileElements ? 1 : kTileElements / args.n;
    const auto tile = [&](std::int64_t t) {
      for (std::int64_t row = t * group; row < args.rows && row < (t + 1) * group; ++row)
        sort_row<E>(args, row);
    };
    if (args.rows <= group) tile(0);
    else parallel_for(stream, (args.rows + group - 1) / group, tile);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
