// The tree of a scenario file: what may stand in it, how trees are laid over each other, how a path is set.
//
//   name, description, based_on, seeds, baseline, sources, measured     about the experiment
//   cluster, store, policy, engine, workload                            parameters (parameter.hpp)
//   arms: { NAME: any of the parameters }                               what an arm has different
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/experiment/json_text.hpp"
#include "tools/experiment/settings.hpp"

namespace kvlift::experiment {

/// Seeds a scenario may ask for; each is a process.
inline constexpr std::int64_t kSeedsMax = 10'000;

/// Every field known, of the right type and in range; otherwise UserError "`file`: PATH: ...".
/// Returns the tree in its long form: "policy": "NAME" becomes "policy": {"preset": "NAME"}.
Json checked_document(Json document, const std::string& file);

/// Objects are merged, and lists of as many objects element by element; everything else is replaced. A "policy" that
/// names a preset replaces the whole policy.
void merge(Json& base, const Json& overlay);

/// The node at a path such as "cluster.hosts[0].nodes"; null pointer when it is not there.
const Json* node_at(const Json& tree, std::string_view path);

/// Lays `value` at `path` over a merged scenario. An arm that has no list of its own gets a copy of the scenario's
/// before one of its elements is set. UserError "`option`: PATH: ..." when the path is malformed or outside a list.
void set_path(Json& scenario, const std::string& path, Json value, const std::string& option = "--set");

/// Fills settings from a checked tree.
Settings settings_of(const Json& tree);

/// True when the path names a parameter or an object that holds some.
bool is_known_path(std::string_view path);

/// The parameters below an arm's overrides or at the top of a scenario.
const std::vector<std::string>& settings_sections();

}  // namespace kvlift::experiment
