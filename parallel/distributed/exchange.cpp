#include "distributed/exchange.hpp"

#include <algorithm>
#include <cstring>

namespace braid::parallel::distributed {

std::vector<std::vector<std::int64_t>> exchange_numbers(ProcessCommunicator& ranks,
                                                        const std::vector<std::int64_t>& mine,
                                                        std::string_view name) {
  const auto count = static_cast<std::int64_t>(mine.size());
  const Tensor in = make_tensor({count}, DType::int64, Device()),
               all = make_tensor({count * ranks.size()}, DType::int64, Device());
  std::copy(mine.begin(), mine.end(), in.data<std::int64_t>());
  ranks.start_all_gather(all, in, name).wait();
  const auto* const values = all.data<const std::int64_t>();
  std::vector<std::vector<std::int64_t>> lists;
  for (int rank = 0; rank < ranks.size(); ++rank)
    lists.emplace_back(values + rank * count, values + (rank + 1) * count);
  return lists;
}

std::vector<std::string> exchange_texts(ProcessCommunicator& ranks, const std::string& mine,
                                        std::string_view name) {
  std::vector<std::int64_t> lengths;
  for (const auto& list : exchange_numbers(ranks, {static_cast<std::int64_t>(mine.size())}, name))
    lengths.push_back(list.front());
  const std::int64_t longest = std::max<std::int64_t>(*std::ranges::max_element(lengths), 1);
  const Tensor in = make_tensor({longest}, DType::uint8, Device()),
               all = make_tensor({longest * ranks.size()}, DType::uint8, Device());
  auto* const text = in.data<std::uint8_t>();
  std::fill(text, text + longest, std::uint8_t{0});
  std::memcpy(text, mine.data(), mine.size());
  ranks.start_all_gather(all, in, name).wait();
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank)
    texts.emplace_back(reinterpret_cast<const char*>(all.data<const std::uint8_t>()) +
                           static_cast<std::int64_t>(rank) * longest,
                       static_cast<std::size_t>(lengths[rank]));
  return texts;
}

}  // namespace braid::parallel::distributed
