// The table of parameters as documentation: text, Markdown, or a JSON Schema for editors.
#pragma once

#include <string>

#include "tools/experiment/json_text.hpp"

namespace kvlift::experiment {

std::string schema_table();
std::string schema_markdown();
/// Draft 2020-12.
Json schema_json();

}  // namespace kvlift::experiment
