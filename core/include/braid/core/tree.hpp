#pragma once

/// Trees: types whose tensors can be visited, each with its path. A model is a struct, a batch is a
/// struct; both are trees.
///
///     struct Batch {
///       Tensor image, label;
///       BRAID_FIELDS(image, label)
///     };
///     void print_shapes(Batch& batch) {
///       tree::visit(batch, [](const std::string& path, Tensor& t) { print(path, t.shape()); });
///     }
///
/// fields.hpp    BRAID_FIELDS
/// concepts.hpp  which types are trees, and which are plain
/// check.hpp     what the compiler can count in BRAID_FIELDS; the errors are in check_model.hpp
/// listed.hpp    run-time check of BRAID_FIELDS, for classes with constructors
/// flat.hpp      a tree as flat lists, which all algorithms use
/// walk.hpp      flatten, visit, visit_nodes, leaves
/// share.hpp     share, map
#include <braid/core/check_model.hpp>
#include <braid/core/internal/tree/check.hpp>
#include <braid/core/internal/tree/concepts.hpp>
#include <braid/core/internal/tree/fields.hpp>
#include <braid/core/internal/tree/flat.hpp>
#include <braid/core/internal/tree/listed.hpp>
#include <braid/core/internal/tree/share.hpp>
#include <braid/core/internal/tree/type_name.hpp>
#include <braid/core/internal/tree/walk.hpp>
