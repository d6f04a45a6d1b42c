#pragma once
// What a training program needs beside model, loss and optimizer.
#include <braid/nn/training/accuracy.hpp>
#include <braid/nn/training/checkpoint.hpp>
#include <braid/nn/training/options.hpp>
#include <braid/nn/training/progress.hpp>
#include <braid/nn/training/stop.hpp>
#include <braid/nn/training/summary.hpp>
