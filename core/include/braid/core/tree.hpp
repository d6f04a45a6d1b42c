#pragma once

/// Trees: types whose tensors can be visited, each with its path. A model is a struct, a batch is a
/// struct; both are trees.
///
///   struct Batch { Tensor image, label; BRAID_FIELDS(image, label) };
///   tree::visit(batch, [](const std::string& path, Tensor& t) { … });
///
/// fields.hpp    BRAID_FIELDS
/// concepts.hpp  which types are trees, and which are plain
/// check.hpp     compile-time checks of BRAID_FIELDS
/// listed.hpp    run-time check of BRAID_FIELDS, for classes with constructors
/// flat.hpp      a tree as flat lists, which all algorithms use
/// walk.hpp      flatten, visit, visit_nodes, leaves
/// share.hpp     share, map
#include <braid/core/tree/check.hpp>
#include <braid/core/tree/concepts.hpp>
#include <braid/core/tree/fields.hpp>
#include <braid/core/tree/flat.hpp>
#include <braid/core/tree/listed.hpp>
#include <braid/core/tree/share.hpp>
#include <braid/core/tree/type_name.hpp>
#include <braid/core/tree/walk.hpp>
