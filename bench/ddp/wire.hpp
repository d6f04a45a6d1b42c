#pragma once
#include <braid/braid.hpp>

namespace bench::ddp {

/// Times a net of 12 equal layers, with 48 MiB of gradients in buckets of 4 MiB, and prints one
/// line of JSON on rank 0 (times in ms; bench/peers/ddp_wire.py prints the same for PyTorch):
///   compute     forward and backward without communication
///   reduce      the all-reduces of the buckets, one after another, with nothing else running
///   bound       the step if each bucket took its time and began as soon as it is full
///   step        forward and backward with communication
///   share       the part of the communication that is hidden, divided by that of `bound`
///   few, few_bf16  the step with few rows, where the wire is the limit, in float32 and compressed
void wire(braid::parallel::Process& process);

}  // namespace bench::ddp
