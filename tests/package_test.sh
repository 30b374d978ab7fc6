#!/usr/bin/env bash
# The installed package is enough for a consumer: find_package(kvlift), kvlift::core, headers by their path.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$KVLIFT_BUILD" --component core --prefix "$folder/prefix" >"$folder/log"

mkdir "$folder/consumer"
cat >"$folder/consumer/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(kvlift 0.1 REQUIRED)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE kvlift::core)
END
cat >"$folder/consumer/consumer.cpp" <<'END'
#include "core/policy.hpp"
#include "core/time.hpp"
int main() {
  const bool found = kvlift::policy_preset("rfc-4271").has_value();
  return found && kvlift::seconds(1).ns == 1'000'000'000 ? 0 : 1;
}
END
cmake -S "$folder/consumer" -B "$folder/consumer/build" -G Ninja -DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/log"
cmake --build "$folder/consumer/build" >>"$folder/log" || { cat "$folder/log"; exit 1; }
"$folder/consumer/build/consumer"
