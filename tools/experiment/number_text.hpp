// Numbers as text, the same on every machine and in every locale.
#pragma once

#include <string>

namespace kvlift::experiment {

/// The shortest text that reads back as the same number: 30, 0.6, 1e+21, nan.
std::string number_text(double number);
/// With a fixed number of decimals; "-" for what is not a number. No "-0.0".
std::string fixed_text(double number, int decimals);
/// Rounded to so many decimals, for files that people compare.
double rounded(double number, int decimals);

}  // namespace kvlift::experiment
