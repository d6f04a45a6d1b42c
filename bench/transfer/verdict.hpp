#pragma once
#include <vector>

#include "support/json.hpp"
#include "transfer/moves.hpp"
#include "transfer/table.hpp"

namespace bench::transfer {

/// Measures matrix products, and with them and the fitted copies says from which work on a move
/// pays: by the byte, for linear layers and for an MLP. Devices that are not emulated also train
/// the MLP, so that what was measured stands beside what was predicted.
void print_verdict(const Ends& ends, bool emulation, const std::vector<Column>& columns, int rounds,
                   std::vector<Json>& rows);

}  // namespace bench::transfer
