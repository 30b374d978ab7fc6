// What a wrong scenario is answered with: one line that names file, field and, for a misspelling, the right word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/tools/example_scenario.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

std::string message_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  try {
    std::vector<SetOption> options;
    for (const std::string& set : sets) options.push_back(parse_set_option(set));
    scenario_of(text, "s.json", options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

struct Case {
  const char* wrong;
  std::string message;
};

/// As the answer lists them.
std::string presets() {
  std::string text;
  const auto& names = policy_preset_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  return text;
}

TEST(ScenarioErrors, AreOneLineThatNamesFileAndField) {
  const std::vector<Case> cases{
      // JSON itself
      {"", "s.json:1:1: unexpected end of input; expected '[', '{', or a literal"},
      {"{\n  \"seeds\": 1,\n}", "s.json:3:1: unexpected '}'; expected string literal"},
      {"{\"seeds\": 1e999}", "s.json:1:15: number overflow parsing '1e999'"},
      {"[]", "s.json:1: must be an object"},
      {"// a remark\n/* and\nanother */ 5", "s.json:3: must be an object"},
      {"\xef\xbb\xbf{}", "s.json:1: the line starts with a byte order mark; a scenario is UTF-8 without one"},
      {"{\"seeds\": 1, \"seeds\": 2}", "s.json: seeds: given twice"},
      {"{\"engine\": {\"ranks\": 1, \"load\": \"asynchronous\", \"ranks\": 2}}", "s.json: engine.ranks: given twice"},
      {"{\"cluster\": {\"hosts\": [{}, {\"nodes\": 1, \"nodes\": 1}]}}", "s.json: cluster.hosts[1].nodes: given twice"},
      // names
      {"{\"engin\": {}}", "s.json: engin: unknown; did you mean \"engine\"?"},
      {"{\"zebra\": {}}", "s.json: zebra: unknown"},
      {"{\"store\": {\"master\": {\"kv_lease_ttl\": 1}}}",
       "s.json: store.master.kv_lease_ttl: unknown; did you mean \"kv_lease_ttl_ms\"?"},
      {"{\"cluster\": {\"host\": []}}", "s.json: cluster.host: unknown; did you mean \"hosts\"?"},
      {"{\"cluster\": {\"hosts\": [{\"ssd\": {\"raed_latency_us\": 1}}]}}",
       "s.json: cluster.hosts[0].ssd.raed_latency_us: unknown; did you mean \"read_latency_us\"?"},
      {"{\"arms\": {\"B\": {\"polcy\": {}}}}", "s.json: arms.B.polcy: unknown; did you mean \"policy\"?"},
      {"{\"arms\": {\"B.c\": {}}}", "s.json: arms.B.c: the name of an arm is made of letters, digits, \"_\" and \"-\""},
      {"{\"measured\": {\"phases\": {\"r1\": {\"A\": {\"ttft_p95_ms\": 1}}}}}",
       "s.json: measured.phases.r1.A.ttft_p95_ms: unknown; did you mean \"ttft_p90_ms\"?"},
      // types
      {"{\"engine\": 5}", "s.json: engine: must be an object"},
      {"{\"cluster\": {\"hosts\": {}}}", "s.json: cluster.hosts: must be a list of objects"},
      {"{\"cluster\": {\"hosts\": []}}", "s.json: cluster.hosts: must not be empty"},
      {"{\"engine\": {\"ranks\": \"8\"}}",
       "s.json: engine.ranks: must be an integer of ranks from 1 to 10000, not the text \"8\""},
      {"{\"engine\": {\"ranks\": 1.5}}", "s.json: engine.ranks: must be an integer of ranks from 1 to 10000, not 1.5"},
      {"{\"engine\": {\"ranks_share_keys\": 1}}",
       "s.json: engine.ranks_share_keys: must be true or false, not a number"},
      {"{\"engine\": {\"step_base_ms\": null}}",
       "s.json: engine.step_base_ms: must be a number of ms from 0 to 60000, not null"},
      {"{\"cluster\": {\"hosts\": [{\"segment_bytes\": \"1 MiBB\"}]}}",
       "s.json: cluster.hosts[0].segment_bytes: must be a size in bytes (a number, or a text such as \"256MiB\") above "
       "0 and at most 100000000000000, not the text \"1 MiBB\""},
      {"{\"seeds\": 0}", "s.json: seeds: must be an integer from 1 to 10000"},
      // values
      {"{\"cluster\": {\"hosts\": [{\"ssd\": {\"read_bandwidth_bytes_per_s\": 0}}]}}",
       "s.json: cluster.hosts[0].ssd.read_bandwidth_bytes_per_s: must be a number from 1000000 to 1000000000000000, "
       "not 0"},
      {"{\"store\": {\"holder\": {\"bucket_bytes\": 1e300}}}",
       "s.json: store.holder.bucket_bytes: must be a size in bytes (a number, or a text such as \"256MiB\") above 0 "
       "and at most 9e+15, not 1e+300"},
      {"{\"store\": {\"master\": {\"eviction_ratio\": 1.2}}}",
       "s.json: store.master.eviction_ratio: must be a number from 0 to 1, not 1.2"},
      {"{\"store\": {\"master\": {\"kv_lease_ttl_ms\": -1}}}",
       "s.json: store.master.kv_lease_ttl_ms: must be a number of ms from 0 to 31536000000, not -1"},
      {"{\"store\": {\"master\": {\"kv_lease_ttl_ms\": 9223372036854775807}}}",
       "s.json: store.master.kv_lease_ttl_ms: must be a number of ms from 0 to 31536000000, not 9.223372036854776e+18"},
      {"{\"policy\": \"rfc-4217\"}",
       "s.json: policy.preset: must be " + presets() + ", not the text \"rfc-4217\"; did you mean \"rfc-4271\"?"},
      {"{\"policy\": {\"trigger\": \"exist\"}}",
       "s.json: policy.trigger: must be none, on_hit, exist_probe, router_call or oracle, not the text \"exist\"; "
       "did you mean \"exist_probe\"?"},
      {"{\"based_on\": \"a2-c2-claen-not-there\"}", "s.json: based_on: a2-c2-claen-not-there: no such scenario"},
      {"{\"based_on\": \"\"}", "s.json: based_on: must not be empty"},
      // texts that are printed, and a name that files are called by
      {"{\"name\": \"\"}", "s.json: name: must not be empty"},
      {"{\"name\": \"\\u001b[31m\"}", "s.json: name: must be a text without control characters"},
      {"{\"name\": \"../../x\"}",
       "s.json: name: must not hold \"/\" or \"\\\", start with \".\" or be longer than 200 bytes"},
      {"{\"description\": \"a\\nb\"}", "s.json: description: must be a text without control characters"},
      {"{\"workload\": {\"phases\": [{\"name\": \"\\u0007\"}]}}",
       "s.json: workload.phases[0].name: must be a text without control characters"},
  };
  for (const Case& c : cases) EXPECT_EQ(message_of(c.wrong), c.message) << c.wrong;
}

TEST(ScenarioErrors, PartsThatDoNotFitTogether) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"cluster.hosts[0].segment_bytes=50000",
       "s.json: arm A: cluster.hosts[0].segment_bytes: 50 KB cannot hold one object of 100 KB"},
      {"store.holder.staging_bytes=1",
       "s.json: arm A: store.holder.staging_bytes: 1 B cannot hold one object of 100 KB"},
      {"engine.ranks=3", "s.json: arm A: engine.ranks: 3 ranks x 1 engines do not divide the cluster's 2 nodes"},
      {"store.holder.ssd_bytes=1MB",
       "s.json: arm A: store.holder.ssd_bytes: 900 KB up to ssd_high_watermark_ratio cannot hold one bucket of 50 MB "
       "(bucket_bytes, bucket_keys)"},
      {"store.holder={\"ssd_bytes\":110000,\"bucket_keys\":1}",
       "s.json: arm A: store.holder.ssd_bytes: 99 KB up to ssd_high_watermark_ratio cannot hold one bucket of 100 KB "
       "(bucket_bytes, bucket_keys)"},
      {"store.holder.bucket_bytes=1KB",
       "s.json: arm A: store.holder.bucket_bytes: 1 KB cannot hold one object of 100 KB"},
      {"cluster.hosts[0].count=6000",
       "s.json: arm A: cluster.hosts: 12000 nodes, more than the 10000 that a cluster may have"},
      {"workload.block_bytes=[1000]",
       "s.json: arm A: engine.bytes_per_token: is not used: workload.block_bytes gives the sizes; leave one of them "
       "out "
       "(0 and [])"},
      {"workload.phases[0].concurrency=5",
       "s.json: arm A: workload.phases[0].concurrency: is more than the phase's 4 prompts: some clients would ask "
       "nothing"},
      {"engine.bytes_per_token=0",
       "s.json: arm A: engine.bytes_per_token: must be at least 1, or workload.block_bytes must be given"},
      {"workload.phases[0].prompts=0",
       "s.json: arm A: workload.phases[0].prompts: must be at least 1 for a closed loop"},
      {"workload.phases[0].name=r1", "s.json: arm A: workload.phases[2].name: \"r1\" is the name of another phase"},
      {"workload.phases[1].span_s=0", "s.json: arm A: workload.phases[1].span_s: must be above 0 for a pause"},
      {"workload.phases[1].prompts=3", "s.json: arm A: workload.phases[1].prompts: is for closed_loop phases only"},
      {"workload.phases[1].measured=true",
       "s.json: arm A: workload.phases[1].measured: a pause has no requests to measure"},
      {"workload.phases[0].span_s=3", "s.json: arm A: workload.phases[0].span_s: is for pauses only"},
      {"workload.phases[1]={\"kind\":\"open_loop\",\"span_s\":0}",
       "s.json: arm A: workload.phases: a trace (open_loop) and closed_loop phases cannot be in one run"},
      {"workload.trace.path=t.jsonl", "s.json: arm A: workload.trace.path: is not used: no phase is open_loop"},
      {"workload.prompt_tokens=0", "s.json: arm A: workload.prompt_tokens: must be at least 1 for a closed loop"},
      {"store.holder.ssd_low_watermark_ratio=0.95",
       "s.json: arm A: store.holder.ssd_low_watermark_ratio: must not be above ssd_high_watermark_ratio"},
      {"store.master.enable_offload=false",
       "s.json: arm B: store.master.enable_offload: a policy that promotes needs the SSD tier"},
      {"arms.B.policy.trigger=on_hit", "s.json: arm B: policy.execution: promotion on hit is carried out by pull"},
      {"arms.B.policy.execution=pull",
       "s.json: arm B: policy.execution: pull: is for triggers on_hit and router_call only"},
      {"arms.A.policy.gate_watermark=true", "s.json: arm A: policy.gate_watermark: is for policies that promote only"},
      {"arms.A.policy.get_kick=true",
       "s.json: arm A: policy.get_kick: is for execution immediate_pool by exist_probe or router_call only"},
      {"arms.B.policy.routers=2", "s.json: arm B: policy.routers: is for trigger router_call only"},
      {"arms.B.policy.pull_batch=2", "s.json: arm B: policy.pull_batch: is for execution pull only"},
      {"arms.B.policy.dram_share=0.1", "s.json: arm B: policy.dram_share: is for dram other than shared_pool only"},
      {"arms.B.policy.get_wait_cap_ms=9", "s.json: arm B: policy.get_wait_cap_ms: is for get_wait by_length only"},
      {"arms.B.policy.gate_cap=false",
       "s.json: arm B: policy.gate_cap: cannot be off: promotions in flight are always bounded"},
      {"arms.B.workload.phases=[{\"name\":\"r1\",\"prompts\":1,\"measured\":true}]",
       "s.json: arms.B.workload.phases: every arm must have the same phases"},
  };
  for (const auto& [set, message] : cases) EXPECT_EQ(message_of(example_text(), {set}), message) << set;
}

TEST(ScenarioErrors, ARunThatWouldNotEndIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"workload.phases[1].span_s=31536000", "s.json: arm A: workload.phases[1]: takes about 3.2e+07 s of simulated"},
      {"workload.phases[0].prompts=10000000", "s.json: arm A: workload.phases[0]: takes about"},
      {"workload.prompt_tokens=100000000", "--set: workload.prompt_tokens: must be"},
      {"workload.prompt_output_tokens=1000000000", "--set: workload.prompt_output_tokens: must be"},
      {"workload.phases[2].prompts=1000000000", "--set: workload.phases[2].prompts: must be"},
      {"cluster.hosts[0].count=100000", "--set: cluster.hosts[0].count: must be"},
      {"cluster.hosts[0].ssd.read_bandwidth_bytes_per_s=1e-300", "--set: cluster.hosts[0].ssd.read_bandwidth"},
      {"cluster.rpc_latency_us=1e12", "--set: cluster.rpc_latency_us: must be"},
  };
  for (const auto& [set, start] : cases) {
    EXPECT_TRUE(message_of(example_text(), {set}).starts_with(start)) << message_of(example_text(), {set});
  }
  EXPECT_THAT(message_of(example_text(), {"cluster.hosts[0].count=5000", "store.holder.heartbeat_period_ms=100"}),
              testing::StartsWith("s.json: arm A: workload.phases["));
  // The slowest machine and a day of rest are fine.
  EXPECT_EQ(message_of(example_text(),
                       {"cluster.hosts[0].ssd.read_bandwidth_bytes_per_s=1e6", "workload.phases[1].span_s=86400"}),
            "");
}

TEST(ScenarioErrors, APolicyThatEveryArmReplacesIsCheckedToo) {
  EXPECT_EQ(message_of(example_text(R"("policy": {"preset": "none", "get_kick": true})")),
            "s.json: policy.get_kick: is for execution immediate_pool by exist_probe or router_call only");
}

TEST(ScenarioErrors, InABaseNameTheFileThatLeadsThere) {
  const std::filesystem::path folder = testing::TempDir();
  const std::string top = (folder / "top.json").string();
  const std::string base = (folder / "wrong_base.json").string();
  const auto message = [&](const std::string& text) {
    std::ofstream(base) << text;
    try {
      scenario_of(R"({"based_on": "wrong_base"})", top);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("{"), top + ": based_on: " + base + ":1:2: unexpected end of input; expected string literal");
  EXPECT_EQ(message(R"({"engine": {"rank": 1}})"),
            top + ": based_on: " + base + ": engine.rank: unknown; did you mean \"ranks\"?");
  EXPECT_EQ(message(R"({"based_on": "wrong_base"})"), base + ": based_on: more than 8 files deep, or in a circle");
}

TEST(ScenarioErrors, AFileWithoutEndIsNotRead) { EXPECT_THROW(load_scenario("/dev/zero"), UserError); }

TEST(ScenarioErrors, OpenLoopNeedsItsBlockSizeSaid) {
  const std::string text =
      R"({"engine": {"bytes_per_token": 10}, "workload": {"phases": [{"name": "x", "kind": "open_loop"}]}})";
  EXPECT_EQ(message_of(text),
            "s.json: workload.trace.block_tokens: must be given: a trace does not say how many tokens its hash ids "
            "stand for");
  EXPECT_EQ(message_of(text, {"workload.trace.block_tokens=16"}),
            "s.json: workload.trace.block_tokens: must be equal to engine.block_tokens (512)");
  EXPECT_EQ(message_of(text, {"workload.trace.block_tokens=512"}), "");
}

TEST(ScenarioErrors, ReferencesToWhatIsNotThere) {
  EXPECT_EQ(message_of(example_text("\"baseline\": \"C\"")), "s.json: baseline: no arm \"C\"; did you mean \"A\"?");
  EXPECT_EQ(message_of(example_text(R"("sources": {"engine.rank": "me"})")),
            "s.json: sources[\"engine.rank\"]: no such parameter");
  EXPECT_EQ(message_of(example_text(R"("measured": {"phases": {"r2": {"A": {"ttft_mean_ms": 1}}}})")),
            "s.json: measured.phases.r2: no such phase; did you mean \"r1\"?");
  EXPECT_EQ(message_of(example_text(R"("measured": {"phases": {"r1": {"C": {"ttft_mean_ms": 1}}}})")),
            "s.json: measured.phases.r1.C: no such arm; did you mean \"A\"?");
}

TEST(SetErrors, NameTheOption) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"engine.ranks", "--set: \"engine.ranks\" is not path=value"},
      {"=3", "--set: \"=3\" is not path=value"},
      {"engine..ranks=3", "--set: \"engine..ranks\" is not a path such as engine.ranks or cluster.hosts[0].nodes"},
      {"engine.rank=3", "--set: engine.rank: unknown; did you mean \"ranks\"?"},
      {"engine.ranks=many", "--set: engine.ranks: must be an integer of ranks from 1 to 10000, not the text \"many\""},
      {"store.master.eviction_ratio=nan",
       "--set: store.master.eviction_ratio: must be a number from 0 to 1, not the text \"nan\""},
      {"cluster.hosts[1].nodes=3", "--set: cluster.hosts[1].nodes: cluster.hosts has 1 elements"},
      {"based_on=x", "--set: based_on: belongs in a file; give that scenario instead of this one"},
      {"policy.get_wait=off", "--set: policy.get_wait: has no effect, every arm sets it; use arms.A.policy.get_wait"},
  };
  for (const auto& [set, message] : cases) EXPECT_EQ(message_of(example_text(), {set}), message) << set;
}

}  // namespace
}  // namespace kvlift::experiment
