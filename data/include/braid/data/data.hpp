#pragma once

/// \file All of braid::data: datasets, which can be split, sampled and loaded in batches with
/// workers; IDX, .npy and .npz files; MNIST, synthetic digits, text as tokens.
///
/// Shapes    an item is a struct, tuple or array of tensors; in a batch each tensor has one more
///           dim in front
/// Types     those of the items: digits are float32 in [0, 1] with int64 labels, tokens int64,
///           arrays from files keep their dtype
/// Device    data is on the CPU; programs move batches with `to`
/// Gradient  none: nothing here is recorded
/// Throws    IoError for files that are missing or damaged, with path and offset; ShapeError and
///           DTypeError for items of different shapes or dtypes, with the leaf's path
#include <braid/data/bpe.hpp>
#include <braid/data/crop.hpp>
#include <braid/data/dataset.hpp>
#include <braid/data/idx.hpp>
#include <braid/data/image.hpp>
#include <braid/data/image_folder.hpp>
#include <braid/data/labelled.hpp>
#include <braid/data/loader.hpp>
#include <braid/data/mnist.hpp>
#include <braid/data/npz.hpp>
#include <braid/data/sampler.hpp>
#include <braid/data/sequences.hpp>
#include <braid/data/synthetic.hpp>
#include <braid/data/tensor_dataset.hpp>
#include <braid/data/text.hpp>
