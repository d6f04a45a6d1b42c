#pragma once

// All headers of braid::parallel.
#include <braid/parallel/communicator.hpp>
#include <braid/parallel/data_parallel.hpp>
#include <braid/parallel/devices.hpp>
#include <braid/parallel/gather.hpp>
#include <braid/parallel/loss.hpp>
#include <braid/parallel/parallel_apply.hpp>
#include <braid/parallel/replicate.hpp>
#include <braid/parallel/scatter.hpp>
