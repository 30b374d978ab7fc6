// The designs side by side: one arm each over the same scenario, paired with one baseline.
#include "tools/experiment/designs.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/tools/example_scenario.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

std::vector<std::string> names(const Scenario& scenario) {
  std::vector<std::string> list;
  for (const Arm& arm : scenario.arms) list.push_back(arm.name);
  return list;
}

Summary made_up_summary(const Scenario& scenario) {
  ExperimentOptions options;
  options.driver = "made-up";
  options.seeds = 3;
  const Drivers drivers{{"made-up", [](RunPlan plan) { return made_up_run(plan); }}};
  return summarise(scenario, run_experiment(scenario, drivers, options), {});
}

TEST(Designs, AreArmsThatDifferInTheirPolicyOnly) {
  const Scenario scenario = with_designs(example({"arms.A.engine.max_num_seqs=7", "arms.B.engine.max_num_seqs=9"}),
                                         standard_designs(), "none");
  EXPECT_EQ(names(scenario), standard_designs());
  EXPECT_EQ(scenario.baseline, "none");
  for (const Arm& arm : scenario.arms) {
    EXPECT_EQ(arm.settings.policy, *policy_preset(arm.name));
    EXPECT_EQ(arm.settings.engine.max_num_seqs, 7) << "as the scenario's baseline has it";
  }
}

TEST(Designs, EveryPresetFitsAScenario) {
  const auto& presets = policy_preset_names();
  EXPECT_EQ(with_designs(example(), {presets.begin(), presets.end()}, "none").arms.size(), presets.size());
}

TEST(Designs, TheBaselineIsAddedWhenItIsNotAmongThem) {
  EXPECT_EQ(names(with_designs(example(), {"impl-2646"}, "rfc-4271")),
            (std::vector<std::string>{"rfc-4271", "impl-2646"}));
}

TEST(Designs, APolicyFileIsADesign) {
  const std::string file = testing::TempDir() + "swapping.json";
  std::ofstream(file) << R"({"preset": "rfc-4271", "on_full": "swap"})";
  const Scenario scenario = with_designs(example(), {file}, "none");
  EXPECT_EQ(scenario.arms.back().name, "swapping");
  EXPECT_EQ(scenario.arms.back().settings.policy.on_full, Policy::OnFull::swap);
  std::ofstream(file) << R"({"preset": "rfc-4271", "on_fill": "swap"})";
  EXPECT_THROW(with_designs(example(), {file}, "none"), UserError);
  std::remove(file.c_str());
}

TEST(Designs, UnknownOnesAndDoubleOnesAreRefused) {
  EXPECT_THROW(with_designs(example(), {"rfc-4217"}, "none"), UserError);
  EXPECT_THROW(with_designs(example(), {"rfc-4271", "rfc-4271"}, "none"), UserError);
}

TEST(Designs, TheMatrixIsPairedAndSaysTheShareOfTheOracle) {
  const Summary summary = made_up_summary(with_designs(example(), {"rfc-4271", "oracle"}, "none"));
  const Json json = designs_json(summary)["phases"]["r1"];
  EXPECT_NEAR(json["rfc-4271"]["decrease_ttft_mean"].get<double>(), 0.1, 1e-6);
  EXPECT_LT(json["rfc-4271"]["decrease_ttft_mean_ci95"].get<double>(), 0.001) << "paired by seed";
  EXPECT_NEAR(json["rfc-4271"]["share_of_oracle"].get<double>(), 1, 1e-6);
  EXPECT_FALSE(json["none"].contains("decrease_ttft_mean"));
  const std::string csv = designs_csv(summary);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_NE(designs_table(summary).find("rfc-4271"), std::string::npos);
}

}  // namespace
}  // namespace kvlift::experiment
