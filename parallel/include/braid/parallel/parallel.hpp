#pragma once

/// \file
/// All of braid::parallel: DataParallel and its parts scatter, replicate, parallel_apply and
/// gather, each of which can be used alone; losses of parts of a batch; collectives over the
/// devices of a group.
///
/// Shapes    a batch is split along dim 0 by default; a chunk keeps the sizes of the other dims
/// Types     any dtype for copies; floating point for sums
/// Device    inputs on any device; the model on the first device of the group; outputs there by
///           default
/// Gradient  of a loss of the gathered output: the same as on one device, summed over the replicas;
///           gradients of gradients work
/// Throws    ReplicaError, with a replica's exception nested; DeviceError, ShapeError,
///           ArgumentError: `op: expected …, got …`, before anything is changed
/// Source    torch.nn.parallel.DataParallel; the differences: docs/notes/data_parallel.md
#include <braid/parallel/checkpoint.hpp>
#include <braid/parallel/communicator.hpp>
#include <braid/parallel/cost_model.hpp>
#include <braid/parallel/data_parallel.hpp>
#include <braid/parallel/deterministic_data_parallel.hpp>
#include <braid/parallel/devices.hpp>
#include <braid/parallel/distributed_data_parallel.hpp>
#include <braid/parallel/distributed_hooks.hpp>
#include <braid/parallel/error.hpp>
#include <braid/parallel/gather.hpp>
#include <braid/parallel/loss.hpp>
#include <braid/parallel/parallel_apply.hpp>
#include <braid/parallel/print_order.hpp>
#include <braid/parallel/process.hpp>
#include <braid/parallel/process_communicator.hpp>
#include <braid/parallel/rank_run.hpp>
#include <braid/parallel/replicate.hpp>
#include <braid/parallel/replicated_optimizer.hpp>
#include <braid/parallel/report.hpp>
#include <braid/parallel/scatter.hpp>
#include <braid/parallel/zero_redundancy_optimizer.hpp>
