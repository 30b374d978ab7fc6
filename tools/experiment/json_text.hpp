// JSON text to a tree, for files that people write: comments are allowed, a key given twice is an error, and
// every complaint is one line that says where.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kvlift::experiment {

/// Keeps the order in which a file names things: arms and phases are shown in the author's order.
using Json = nlohmann::ordered_json;

/// An object. Throws UserError "`file`:LINE:COLUMN: ..." for text that is not JSON, "`file`: PATH: ..." for a double
/// key.
Json parse_json(const std::string& text, const std::string& file);

/// UserError "`file`: cannot be read: ..." when it cannot, or does not end within the size of any scenario.
std::string read_text_file(const std::string& file);
/// Reads and parses.
Json parse_json_file(const std::string& file);

}  // namespace kvlift::experiment
