#include "tools/experiment/scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/tools/example_scenario.hpp"
#include "tools/experiment/explain.hpp"
#include "tools/experiment/schema.hpp"

namespace kvlift::experiment {
namespace {

const std::vector<std::string> kShipped{"rfc4271-a2-c2", "rfc4271-a2-c4", "rfc4271-h20-c4", "a2-c2-clean",
                                        "conversation-hour"};

std::string shipped(const std::string& name) { return std::string(KVLIFT_SOURCE_DIR) + "/configs/" + name + ".json"; }

Explanation explanation(const Scenario& scenario, const std::string& arm, const std::string& path) {
  for (const Explanation& line : explain(scenario, scenario.arm(arm))) {
    if (line.path == path) return line;
  }
  ADD_FAILURE() << path;
  return {};
}

TEST(Scenario, ArmsAreOverridesInTheOrderOfTheFile) {
  const Scenario s = example();
  ASSERT_EQ(s.arms.size(), 2U);
  EXPECT_EQ(s.arms[0].name, "A");
  EXPECT_EQ(s.arms[0].settings.policy, *policy_preset("none"));
  EXPECT_EQ(s.arms[1].settings.policy, *policy_preset("rfc-4271"));
  EXPECT_EQ(s.arms[1].settings.engine.ranks, 2);
  EXPECT_EQ(s.baseline, "A");
  EXPECT_EQ(s.name, "s");
}

TEST(Scenario, UnitsOfTheKeyBecomeCoresUnits) {
  const Scenario s = example({"store.master.kv_lease_ttl_ms=1.5", "cluster.rpc_latency_us=0.25",
                              "store.client.ssd_prefetch_dedup_ttl_s=3", "cluster.hosts[0].segment_bytes=1.5GiB",
                              "workload.block_bytes=[1000,\"2 KB\",\"2KiB\"]", "engine.bytes_per_token=0"});
  const Settings& settings = s.arms[0].settings;
  EXPECT_EQ(settings.store.master.kv_lease_ttl.ns, 1'500'000);
  EXPECT_EQ(settings.platform.rpc_latency.ns, 250);
  EXPECT_EQ(settings.store.client.ssd_prefetch_dedup_ttl, seconds(3));
  EXPECT_EQ(settings.platform.hosts[0].segment_bytes.value, 3LL << 29);
  EXPECT_EQ(settings.platform.hosts[0].nodes, 2) << "the rest of the element stays";
  EXPECT_THAT(settings.workload.block_bytes, testing::ElementsAre(Bytes{1000}, Bytes{2000}, Bytes{2048}));
}

TEST(Scenario, AnArmIsSetAlone) {
  const Scenario s = example(
      {"arms.B.policy.get_wait=off", "arms.B.cluster.hosts[0].segment_bytes=1GiB", "arms.C.policy=promotion-on-hit"});
  ASSERT_EQ(s.arms.size(), 3U);
  Policy expected = *policy_preset("rfc-4271");
  expected.get_wait = Policy::GetWait::off;
  EXPECT_EQ(s.arms[1].settings.policy, expected);
  EXPECT_EQ(s.arms[1].settings.platform.hosts[0].nodes, 2);
  EXPECT_EQ(s.arms[1].settings.platform.hosts[0].segment_bytes.value, 1LL << 30);
  EXPECT_EQ(s.arms[0].settings.platform.hosts[0].segment_bytes, mebibytes(64));
  EXPECT_EQ(s.arms[2].settings.policy, *policy_preset("promotion-on-hit"));
}

TEST(Scenario, APresetInAnArmReplacesTheScenariosPolicy) {
  const Scenario s = scenario_of(
      R"({"engine": {"bytes_per_token": 1}, "policy": {"preset": "rfc-4271", "get_kick": false},
          "workload": {"prompt_tokens": 1000, "phases": [{"name": "x", "prompts": 1}]},
          "arms": {"same": {}, "fresh": {"policy": "rfc-4271"}, "varied": {"policy": {"lease": "none"}}}})",
      "s.json");
  EXPECT_FALSE(s.arms[0].settings.policy.get_kick);
  EXPECT_TRUE(s.arms[1].settings.policy.get_kick);
  EXPECT_FALSE(s.arms[2].settings.policy.get_kick);
  EXPECT_EQ(s.arms[2].settings.policy.lease, Policy::LeaseMoment::none);
}

TEST(Scenario, ListsOfAsManyObjectsAreMergedElementByElement) {
  Json base = Json::parse(R"({"hosts": [{"nodes": 8, "ssd": {"a": 1}}], "sizes": [1, 2]})");
  merge(base, Json::parse(R"({"hosts": [{"ssd": {"b": 2}}], "sizes": [3, 4]})"));
  EXPECT_EQ(base, Json::parse(R"({"hosts": [{"nodes": 8, "ssd": {"a": 1, "b": 2}}], "sizes": [3, 4]})"));
  merge(base, Json::parse(R"({"hosts": [{"nodes": 1}, {"nodes": 2}]})"));
  EXPECT_EQ(base["hosts"], Json::parse(R"([{"nodes": 1}, {"nodes": 2}])"));
}

TEST(Scenario, IsLaidOverItsBase) {
  const std::filesystem::path folder = testing::TempDir();
  std::ofstream(folder / "base.json") << example_text(
      R"("seeds": 3, "measured": {"phases": {"r1": {"A": {"ttft_p90_ms": 1}}}})");
  const Scenario s = scenario_of(
      R"({"based_on": "base", "engine": {"step_base_ms": 7}, "measured": {"phases": {"r1": {"A": {"ttft_mean_ms": 2}}}}})",
      (folder / "derived.json").string());
  EXPECT_EQ(s.seeds, 3);
  EXPECT_EQ(s.arms[0].settings.engine.step_base, milliseconds(7));
  EXPECT_EQ(s.arms[0].settings.engine.ranks, 2);
  EXPECT_EQ(s.measured.find("r1", "A", "ttft_mean_ms"), 2);
  EXPECT_EQ(s.measured.find("r1", "A", "ttft_p90_ms"), std::nullopt) << "figures of another round do not shine through";
}

TEST(Scenario, ATraceIsBesideItsFile) {
  const std::string text =
      R"({"engine": {"bytes_per_token": 10}, "workload": {"trace": {"path": "t.jsonl", "block_tokens": 512},
          "phases": [{"name": "x", "kind": "open_loop"}]}})";
  EXPECT_EQ(scenario_of(text, "/some/where/s.json").arms[0].settings.trace.path, "/some/where/t.jsonl");
  EXPECT_EQ(scenario_of(text, "/some/where/s.json", {{"workload.trace.path", "u.jsonl"}}).arms[0].settings.trace.path,
            "u.jsonl");
}

TEST(Explain, NamesTheOriginOfEveryValue) {
  const Scenario s = example({"engine.step_base_ms=9", "arms.B.policy.get_kick=false"},
                             R"("sources": {"engine": "assumed: a guess", "engine.ranks": "the recipe"})");
  EXPECT_EQ(explanation(s, "A", "engine.ranks").origin, "s.json");
  EXPECT_EQ(explanation(s, "A", "engine.ranks").source, "the recipe");
  EXPECT_EQ(explanation(s, "A", "engine.block_tokens").source, "assumed: a guess") << "the word on the object above";
  EXPECT_TRUE(explanation(s, "A", "engine.block_tokens").assumed());
  EXPECT_EQ(explanation(s, "A", "engine.step_base_ms").origin, "--set");
  EXPECT_EQ(explanation(s, "A", "engine.max_num_seqs").origin, "default");
  EXPECT_EQ(explanation(s, "A", "engine.max_num_seqs").value, 64);
  EXPECT_EQ(explanation(s, "B", "policy.preset").origin, "arm B");
  EXPECT_EQ(explanation(s, "B", "policy.trigger").origin, "preset rfc-4271");
  EXPECT_EQ(explanation(s, "B", "policy.get_kick").origin, "--set");
  EXPECT_EQ(explanation(s, "A", "policy.get_kick").origin, "preset none");
  EXPECT_EQ(explanation(s, "A", "workload.phases[2].concurrency").value, 2);
}

TEST(ShippedScenarios, EveryParameterThatIsNotADefaultHasASource) {
  for (const std::string& name : kShipped) {
    const Scenario s = load_scenario(shipped(name));
    EXPECT_EQ(s.name, name);
    EXPECT_FALSE(s.description.empty());
    for (const Arm& arm : s.arms) {
      for (const Explanation& line : explain(s, arm)) {
        EXPECT_FALSE(line.source.empty()) << name << ": " << line.path << " of arm " << arm.name;
      }
    }
  }
}

TEST(ShippedScenarios, TimingIsMarkedAsAssumedOrCalibrated) {
  const Scenario s = load_scenario(shipped("a2-c2-clean"));
  for (const char* path :
       {"cluster.hosts[0].ssd.read_bandwidth_bytes_per_s", "engine.step_base_ms", "engine.prefill_ns_per_token"}) {
    const Explanation line = explanation(s, "A", path);
    EXPECT_TRUE(line.assumed() || line.source.starts_with("calibrated")) << path;
  }
}

TEST(ShippedScenarios, FollowTheRecipe) {
  const Scenario clean = load_scenario(shipped("a2-c2-clean"));
  const Settings& b = clean.arm("B").settings;
  EXPECT_EQ(node_count(b.platform), 8);
  EXPECT_EQ(dram_bytes(b.platform).value, 2LL << 30);
  EXPECT_EQ(b.workload.prompt_tokens.value / b.engine.block_tokens.value, 40) << "keys of a prompt";
  EXPECT_NEAR(static_cast<double>(prompt_bytes(b).value), 111.5e6, 0.1e6);
  EXPECT_EQ(b.store.master.kv_lease_ttl, seconds(2));
  EXPECT_EQ(b.workload.phases.size(), 5U);
  EXPECT_EQ(b.workload.phases[2].span, seconds(700));
  EXPECT_EQ(b.policy, *policy_preset("rfc-4271"));
  const Settings c4 = load_scenario(shipped("rfc4271-a2-c4")).arm("A").settings;
  EXPECT_EQ(c4.store.master.kv_lease_ttl, seconds(60));
  EXPECT_EQ(c4.workload.phases[3].concurrency, 4);
  const Settings c2 = load_scenario(shipped("rfc4271-a2-c2")).arm("B").settings;
  EXPECT_NEAR(static_cast<double>(prompt_bytes(c2).value), 181e6, 0.2e6);
  const Settings hour = load_scenario(shipped("conversation-hour")).arm("none").settings;
  EXPECT_EQ(dram_bytes(hour.platform).value / largest_object(hour).value, 10'000) << "blocks";
}

TEST(ShippedScenarios, AreFoundByName) {
  ASSERT_EQ(setenv("KVLIFT_CONFIGS", (std::string(KVLIFT_SOURCE_DIR) + "/configs").c_str(), 1), 0);
  EXPECT_EQ(load_scenario("a2-c2-clean").name, "a2-c2-clean");
}

TEST(Schema, TheConfigsReadmeIsCurrent) {
  const std::string readme = read_text_file(std::string(KVLIFT_SOURCE_DIR) + "/configs/README.md");
  EXPECT_NE(readme.find(schema_markdown()), std::string::npos)
      << "put the output of `kvlift scenario schema --format markdown` into configs/README.md";
}

TEST(Schema, DefaultsAreAllowedValues) {
  Settings settings;
  settings.workload.phases.resize(1);
  for (const Parameter& parameter : parameters()) {
    const Slot slot = parameter.slot(settings, 0);
    EXPECT_EQ(assign(parameter, value_of(parameter, slot), slot), std::nullopt) << parameter.path;
  }
}

TEST(Schema, PathsEndWithTheirUnit) {
  for (const Parameter& parameter : parameters()) {
    const std::string& unit = parameter.unit;
    const bool plain = unit == "ms" || unit == "us" || unit == "ns" || unit == "s" || unit == "bytes";
    const std::string end = unit == "bytes/s" ? "_bytes_per_s" : plain ? "_" + unit : "";
    const bool per_token = parameter.path.find("_per_") != std::string::npos;
    EXPECT_TRUE(parameter.path.ends_with(end) || (plain && per_token)) << parameter.path;
    EXPECT_FALSE(parameter.doc.empty() || parameter.source.empty()) << parameter.path;
  }
}

}  // namespace
}  // namespace kvlift::experiment
