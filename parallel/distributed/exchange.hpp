#pragma once
#include <string>
#include <vector>

#include <braid/parallel/process_communicator.hpp>

namespace braid::parallel::distributed {

/// A collective: returns the numbers of all ranks, in rank order: [rank][i].
[[nodiscard]] std::vector<std::vector<std::int64_t>> exchange_numbers(
    ProcessCommunicator& ranks, const std::vector<std::int64_t>& mine, std::string_view name);
/// Two collectives: returns the texts of all ranks.
[[nodiscard]] std::vector<std::string> exchange_texts(ProcessCommunicator& ranks,
                                                      const std::string& mine,
                                                      std::string_view name);

}  // namespace braid::parallel::distributed
