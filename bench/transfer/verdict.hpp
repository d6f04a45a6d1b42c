#pragma once
#include <vector>

#include "support/json.hpp"
#include "transfer/moves.hpp"
#include "transfer/table.hpp"

namespace bench::transfer {

/// Measures matrix products and computes, from them and the fitted copy times, from which amount of
/// work on a copy pays: for each byte, for linear layers and for an MLP. On devices that are not
/// emulated it also trains the MLP, to compare the measurement with the prediction.
void print_verdict(const Ends& ends, bool emulation, const std::vector<Column>& columns, int rounds,
                   std::vector<Json>& rows);

}  // namespace bench::transfer
