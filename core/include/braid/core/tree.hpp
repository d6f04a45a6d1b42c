#pragma once

/// Trees: any type whose tensors can be visited with their paths. A model is a struct, a batch is a
/// struct; both are trees.
///
///   struct Batch { Tensor image, label; BRAID_FIELDS(image, label) };
///   tree::visit(batch, [](const std::string& path, Tensor& t) { … });
///
/// fields.hpp    BRAID_FIELDS
/// concepts.hpp  what a tree is, plain types
/// check.hpp     compile-time checks of a list of fields
/// listed.hpp    the same at run time, for classes with constructors
/// flat.hpp      the flat lists that algorithms run over
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
