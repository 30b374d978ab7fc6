#include "tools/experiment/text_table.hpp"

#include <algorithm>

namespace kvlift::experiment {
namespace {

/// Columns that a terminal shows: bytes that continue a UTF-8 character take none.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string escaped(const std::string& cell, char special, const std::string& instead) {
  std::string out;
  for (const char c : cell) out += c == special ? instead : std::string(1, c);
  return out;
}

}  // namespace

std::string TextTable::text(const std::string& indent, std::size_t first_width_min, std::size_t width_min) const {
  std::vector<std::size_t> widths{first_width_min};
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), width_min);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width_of(row[i]), ' ');
      line += i == 0 ? row[i] + blanks : "  " + blanks + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string TextTable::markdown() const {
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    out += "|";
    for (const std::string& cell : rows_[r]) out += " " + escaped(cell, '|', "\\|") + " |";
    out += "\n";
    if (r != 0) continue;
    out += "|";
    for (std::size_t i = 0; i < rows_[r].size(); ++i) out += "---|";
    out += "\n";
  }
  return out;
}

std::string TextTable::csv() const {
  std::string out;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool quote = row[i].find_first_of(",\"\n") != std::string::npos;
      out += (i == 0 ? "" : ",") + (quote ? "\"" + escaped(row[i], '"', "\"\"") + "\"" : row[i]);
    }
    out += "\n";
  }
  return out;
}

}  // namespace kvlift::experiment
