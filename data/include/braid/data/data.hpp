#pragma once

/// \file All of braid::data: datasets and how they are split, sampled and loaded in batches, with
/// workers; IDX, .npy and .npz files; MNIST, drawn digits, text as tokens.
///
/// Shapes    an item is a struct, tuple or array of tensors; a batch is the same with a dim in
///           front of each
/// Types     those of the items: digits are float32 in [0, 1] with int64 labels, tokens int64,
///           arrays from files keep theirs
/// Device    data are on the CPU; programs move batches with `to`
/// Gradient  none: nothing here is recorded
/// Throws    IoError for files that are missing or damaged, with path and offset; ShapeError and
///           DTypeError for items that differ, with the leaf's path
#include <braid/data/dataset.hpp>
#include <braid/data/idx.hpp>
#include <braid/data/labelled.hpp>
#include <braid/data/loader.hpp>
#include <braid/data/mnist.hpp>
#include <braid/data/npz.hpp>
#include <braid/data/sampler.hpp>
#include <braid/data/sequences.hpp>
#include <braid/data/synthetic.hpp>
#include <braid/data/tensor_dataset.hpp>
#include <braid/data/text.hpp>
