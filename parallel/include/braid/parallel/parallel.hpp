#pragma once

/// \file
/// All of braid::parallel: DataParallel and what it is made of, scatter, replicate, parallel_apply
/// and gather, each usable alone; losses of parts of a batch;
/// collectives over the devices of a group.
///
/// Shapes    a batch is cut along dim 0 unless told otherwise; a chunk has the other dims whole
/// Types     any for what is moved; floating point for what is summed
/// Device    inputs on any; the model on the first device of the group; outputs there unless told
///           otherwise
/// Gradient  of a loss of the joined output that of one device, summed over the replicas, and
///           gradients of gradients
/// Throws    ReplicaError with what a replica has thrown nested; DeviceError, ShapeError,
///           ArgumentError: `op: expected …, got …`, before anything is changed
/// Source    torch.nn.parallel.DataParallel; where Braid differs: docs/notes/data_parallel.md
#include <braid/parallel/communicator.hpp>
#include <braid/parallel/cost_model.hpp>
#include <braid/parallel/data_parallel.hpp>
#include <braid/parallel/devices.hpp>
#include <braid/parallel/gather.hpp>
#include <braid/parallel/local_update.hpp>
#include <braid/parallel/loss.hpp>
#include <braid/parallel/parallel_apply.hpp>
#include <braid/parallel/print_order.hpp>
#include <braid/parallel/replicate.hpp>
#include <braid/parallel/report.hpp>
#include <braid/parallel/scatter.hpp>
