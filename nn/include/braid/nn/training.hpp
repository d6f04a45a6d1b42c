#pragma once
/// \file What a training program needs beside model, loss and optimizer: options from the command
/// line, progress, checkpoints, accuracy, a summary of the model, an orderly end at a signal.
/// Nothing here has a gradient; errors stand with each.
#include <braid/nn/training/accuracy.hpp>
#include <braid/nn/training/checkpoint.hpp>
#include <braid/nn/training/options.hpp>
#include <braid/nn/training/progress.hpp>
#include <braid/nn/training/stop.hpp>
#include <braid/nn/training/summary.hpp>
