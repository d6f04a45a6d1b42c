#pragma once
#include "report/json_text.hpp"

namespace braid::parallel {

class DataParallelReport;

/// Writes the report as fields of an object that the caller has opened.
void write_fields(JsonText& json, const DataParallelReport& report);

}  // namespace braid::parallel
