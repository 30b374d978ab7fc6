#include "tools/experiment/experiment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/tools/example_scenario.hpp"
#include "tools/experiment/lease_pressure.hpp"
#include "tools/experiment/process_pool.hpp"
#include "tools/experiment/report.hpp"
#include "tools/experiment/request_log.hpp"
#include "tools/experiment/result_bytes.hpp"
#include "tools/experiment/summary.hpp"
#include "tools/experiment/sweep.hpp"
#include "tools/kvlift/user_error.hpp"

namespace kvlift::experiment {
namespace {

const Drivers kDrivers{
    {"sim", [](const RunPlan& plan) { return made_up_run(plan); }},
    {"refusing", [](const RunPlan& plan) { return made_up_run(plan, true); }},
    {"sometimes", [](const RunPlan& plan) { return made_up_run(plan, plan.seed == 2); }},
    {"crashing",
     [](const RunPlan& plan) {
       if (plan.seed == 2 && plan.policy.trigger != Policy::Trigger::none) ::raise(SIGKILL);
       return made_up_run(plan);
     }},
    {"throwing", [](const RunPlan&) -> RunResult { throw std::runtime_error("two\nlines"); }},
    {"complaining", [](const RunPlan&) -> RunResult { throw UserError("t.jsonl:3: not JSON"); }},
    {"forgetful", [](const RunPlan&) { return RunResult{}; }},
};

Summary summary_of(const Scenario& scenario, const std::string& driver, std::int64_t seeds, std::size_t jobs = 2,
                   SummaryOptions options = {}) {
  return summarise(scenario, run_experiment(scenario, kDrivers, {driver, {}, seeds, jobs, {}}), options);
}

template <class Error>
std::string failure_of(const Scenario& scenario, const std::string& driver, std::int64_t seeds = 1) {
  try {
    run_experiment(scenario, kDrivers, {driver, {}, seeds, 2, {}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Compare, JsonHasTheShapeThatWasAgreed) {
  const Json json = report_json(summary_of(example(), "sim", 1));
  EXPECT_EQ(json["scenario"], "s");
  EXPECT_EQ(json["seeds"], Json({1}));
  EXPECT_TRUE(json["version"].is_string());
  EXPECT_EQ(json["phases"].size(), 1U) << "measured phases only";
  const Json& r1 = json["phases"]["r1"];
  const Json& a = r1["arms"]["A"];
  // TTFT of A: 1010, 1110, 1210, 1310
  EXPECT_EQ(a["requests"], 4);
  EXPECT_EQ(a["ttft_mean_ms"], 1160);
  EXPECT_EQ(a["ttft_p50_ms"], 1160);
  EXPECT_EQ(a["ttft_p90_ms"], 1280);
  EXPECT_EQ(a["ttft_p99_ms"], 1307);
  EXPECT_EQ(a["tpot_mean_ms"], 100);
  EXPECT_EQ(a["ttft_breakdown_ms"]["load_ssd"], 200);
  EXPECT_EQ(a["tokens"]["from_ssd"], 1600);
  EXPECT_EQ(a["tokens"]["computed"], 2400);
  EXPECT_EQ(a["counters"]["promotion_committed"], 0);
  EXPECT_FALSE(a.contains("ttft_mean_ms_ci95"));
  EXPECT_FALSE(a.contains("goodput_requests_per_s"));
  double parts = 0;
  for (const auto& [name, value] : a["ttft_breakdown_ms"].items()) parts += value.get<double>();
  EXPECT_DOUBLE_EQ(parts, 1160) << "the breakdown adds up";
  EXPECT_EQ(r1["decrease"].size(), 1U);
  EXPECT_NEAR(r1["decrease"]["B"]["ttft_mean"].get<double>(), 0.1, 1e-9);
  for (const char* name : {"ttft_p50", "ttft_p90", "ttft_p99"}) {
    EXPECT_NEAR(r1["decrease"]["B"][name].get<double>(), 0.1, 1e-9) << name;
  }
  EXPECT_EQ(r1["exercised"], Json({{"B", true}}));
}

TEST(Compare, SeveralSeedsGiveIntervals) {
  const Json json = report_json(summary_of(example(), "sim", 3));
  EXPECT_EQ(json["seeds"], Json({1, 2, 3}));
  const Json& a = json["phases"]["r1"]["arms"]["A"];
  EXPECT_EQ(a["ttft_mean_ms"], 1170);
  EXPECT_NEAR(a["ttft_mean_ms_ci95"].get<double>(), 4.303 * 10 / 1.7320508, 1e-4);
  EXPECT_TRUE(a.contains("ttft_breakdown_ms_ci95"));
  EXPECT_TRUE(json["phases"]["r1"]["decrease"]["B"].contains("ttft_p50_ci95"));
  EXPECT_NEAR(json["phases"]["r1"]["decrease"]["B"]["ttft_mean_ci95"].get<double>(), 0, 1e-6) << "paired by seed";
}

TEST(Compare, BytesDoNotDependOnTheNumberOfJobs) {
  const Scenario s = example();
  const std::string one = report_json(summary_of(s, "sim", 4, 1)).dump() + report_table(summary_of(s, "sim", 4, 1), {});
  const std::string many =
      report_json(summary_of(s, "sim", 4, 8)).dump() + report_table(summary_of(s, "sim", 4, 8), {});
  EXPECT_EQ(one, many);
}

TEST(Compare, AnArmThatNeverPromotedIsNotExercised) {
  const Summary summary = summary_of(example(), "refusing", 1);
  const Json json = report_json(summary);
  EXPECT_EQ(json["phases"]["r1"]["exercised"]["B"], false);
  EXPECT_EQ(json["phases"]["r1"]["decrease"]["B"], nullptr);
  EXPECT_EQ(json["phases"]["r1"]["refusals"]["B"], Json({{"prefetch_put_running", 12}}));
  const std::string table = report_table(summary, {});
  EXPECT_THAT(table, testing::HasSubstr("arm B: NOT EXERCISED"));
  EXPECT_THAT(table, testing::HasSubstr("prefetch_put_running"));
  EXPECT_THAT(table, testing::Not(testing::HasSubstr("decrease of B")));
}

TEST(Compare, AnArmThatPromotedInSomeSeedsSaysSo) {
  EXPECT_THAT(summary_of(example(), "sometimes", 3).phases[0].notes,
              testing::Contains("arm B committed promotions in 2 of 3 seeds only"));
}

TEST(Compare, SimulatedStandsBesideMeasured) {
  const Scenario s = example({}, R"("measured": {"source": "a round", "phases": {"r1": {
      "A": {"ttft_mean_ms": 1000}, "B": {"ttft_mean_ms": 950}}}})");
  const std::string table = report_table(summary_of(s, "sim", 1), s.measured);
  EXPECT_THAT(table, testing::HasSubstr("measured: a round"));
  EXPECT_THAT(table, testing::ContainsRegex("mean +1160\\.0 +1000\\.0 +\\+16\\.0 % +1044\\.0 +950\\.0 +\\+9\\.9 %"));
  EXPECT_THAT(table, testing::ContainsRegex("mean +10\\.0 % +5\\.0 % +\\+5\\.0"));
}

TEST(Compare, GoodputIsCountedWhenAnSloIsGiven) {
  SummaryOptions options;
  options.slo_ttft_ms = 1200;  // two of A's four; its phase takes 4.64 s + 4 x 0.3 s
  const Json json = report_json(summary_of(example(), "sim", 1, 1, options));
  EXPECT_NEAR(json["phases"]["r1"]["arms"]["A"]["goodput_requests_per_s"].get<double>(), 2 / 5.84, 1e-6);
}

TEST(Run, PrintsEveryPhaseWithRequests) {
  SummaryOptions options;
  options.measured_only = false;
  const Summary summary = summary_of(example(), "sim", 1, 1, options);
  ASSERT_EQ(summary.phases.size(), 2U);
  EXPECT_EQ(summary.phases[0].name, "fill");
}

TEST(Run, ABrokenRunIsOneLine) {
  EXPECT_EQ(failure_of<RunError>(example(), "crashing", 3), "s: arm B, seed 2: killed by signal: Killed");
  EXPECT_EQ(failure_of<RunError>(example(), "throwing"), "s: arm A, seed 1: two lines");
  EXPECT_EQ(failure_of<UserError>(example(), "complaining"), "t.jsonl:3: not JSON");
  EXPECT_EQ(failure_of<RunError>(example(), "forgetful"),
            "s: arm A, seed 1: the driver did not return the phases of the plan");
  EXPECT_EQ(
      failure_of<UserError>(example(), "sym"),
      "--driver: no driver \"sym\"; did you mean \"sim\"? (there are: complaining, crashing, forgetful, refusing, "
      "sim, sometimes, throwing)");
}

/// Takes every request of the trace; its phase has as many.
RunResult read_the_trace(const RunPlan& plan) {
  RunResult result;
  result.phases.emplace_back().name = plan.workload.phases.front().name;
  Request request;
  while (plan.workload.source(request)) {
    RequestRecord& record = result.phases.back().requests.emplace_back();
    record.arrival = request.arrival;
    record.input = request.input;
  }
  return result;
}

TEST(Trace, IsReadByEachRunAndItsFaultsAreTheUsers) {
  const std::filesystem::path folder = testing::TempDir();
  const std::string good = R"({"timestamp": 0, "input_length": 20, "output_length": 1, "hash_ids": [0, 1]})";
  std::ofstream(folder / "good.jsonl") << good << "\n" << good << "\n";
  std::ofstream(folder / "bad.jsonl") << good << "\n{\"timestamp\": 0}\n";
  const std::string text = R"({"engine": {"bytes_per_token": 10, "block_tokens": 16}, "workload": {
      "trace": {"block_tokens": 16}, "phases": [{"name": "x", "kind": "open_loop", "measured": true}]}})";
  const Drivers drivers{{"sim", read_the_trace}};
  const auto with = [&](const std::string& path) {
    return scenario_of(text, "s.json", {{"workload.trace.path", path}});
  };
  const Scenario s = with((folder / "good.jsonl").string());
  const ExperimentResult result = run_experiment(s, drivers, {"sim", {}, 2, 1, {}});
  EXPECT_EQ(result.runs[0][1].phases[0].requests.size(), 2U);
  EXPECT_THAT(
      summarise(s, result, {}).phases[0].notes,
      testing::Contains("trace good.jsonl: arrivals that share a stamp are set apart evenly until the next stamp"));
  for (const char* name : {"bad.jsonl", "missing.jsonl"}) {
    const Scenario broken = with((folder / name).string());
    EXPECT_THROW(run_experiment(broken, drivers, {"sim", {}, 1, 1, {}}), UserError) << name;
  }
  EXPECT_THROW(run_experiment(scenario_of(text, "s.json"), drivers, {"sim", {}, 1, 1, {}}), UserError) << "no trace";
}

TEST(Trace, AFaultInItsMiddleLetsTheDriverEndItsRun) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "middle.jsonl";
  const std::string good = R"({"timestamp": 0, "input_length": 20, "output_length": 1, "hash_ids": [0, 1]})";
  const std::string text = R"({"engine": {"bytes_per_token": 10, "block_tokens": 16}, "workload": {
      "trace": {"block_tokens": 16}, "phases": [{"name": "x", "kind": "open_loop", "measured": true}]}})";
  const std::filesystem::path seen = file.string() + ".seen";
  const Drivers drivers{{"sim", [&](const RunPlan& plan) {
                           RunResult result = read_the_trace(plan);  // not left by an exception
                           std::ofstream(seen) << result.phases.back().requests.size();
                           return result;
                         }}};
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"x": 1})", ":2: unknown field \"x\""},
      {R"({"timestamp": 0, "input_length": 20, "output_length": 1, "hash_ids": [2, 1]})",
       ":2: hash_ids: id 1 was first behind 0, found it behind 2"},
      {R"({"timestamp": 0, "input_length": 20, "output_length": 1, "hash_ids": [3, 3]})",
       ":2: hash_ids: id 3 was first at the start, found it behind 3"},
      {R"({"timestamp": 0, "input_length": 20, "output_length": 1000001, "hash_ids": [0, 1]})",
       ":2: output_length: a run takes at most 1000000, found 1000001"},
      {R"({"timestamp": 9000000000000, "input_length": 20, "output_length": 1, "hash_ids": [0, 1]})",
       ":2: timestamp: a run of this scenario may last "},
  };
  for (const auto& [line, message] : cases) {
    std::ofstream(file) << good << "\n" << line << "\n";
    std::filesystem::remove(seen);
    const Scenario s = scenario_of(text, "s.json", {{"workload.trace.path", file.string()}});
    try {
      run_experiment(s, drivers, {"sim", {}, 1, 1, {}});
      ADD_FAILURE() << line;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(file.string() + message));
    }
    EXPECT_TRUE(std::filesystem::exists(seen)) << line;
  }
}

TEST(ResultBytes, GoThereAndBack) {
  const RunResult run = made_up_run(make_plan(example().arms[1].settings, 5));
  const std::string bytes = to_bytes(run);
  EXPECT_EQ(to_bytes(result_from_bytes(bytes)), bytes);
  EXPECT_EQ(result_from_bytes(bytes).phases[2].requests[3].first_token, run.phases[2].requests[3].first_token);
  EXPECT_THROW(result_from_bytes(bytes.substr(0, bytes.size() - 1)), std::runtime_error);
  EXPECT_THROW(result_from_bytes(bytes + "x"), std::runtime_error);
}

TEST(LeasePressure, WarnsWhenLeasesPinMoreThanDram) {
  // 1 MB a request, 128 MiB of DRAM: 134.2 requests fit.
  const Settings fits = example({"store.master.kv_lease_ttl_ms=13000"}).arms[0].settings;
  const Settings full = example({"store.master.kv_lease_ttl_ms=14000"}).arms[0].settings;
  EXPECT_FALSE(lease_pressure(fits, 10, 1000, 1e6).has_value());
  EXPECT_EQ(lease_pressure(full, 10, 1000, 1e6),
            "a lease of 14 s x 10.00 requests/s x 1 MB pins 140 MB, more than the 128 MiB of DRAM: promotions and puts "
            "find no room");
  EXPECT_FALSE(lease_pressure(full, 10, 1000, 100).has_value()) << "no more than there are can be leased";
}

TEST(LeasePressure, IsEstimatedBeforeARun) {  // RC-70
  // 10 prompts of 1 MB in 8 MiB. Asked for the second time they come from the SSD, many a second; a prefill takes 2 s.
  const std::vector<std::string> sets{"cluster.hosts[0].segment_bytes=4MiB", "engine.prefill_ns_per_token=2000000",
                                      "workload.phases[0].prompts=10", "workload.phases[2].prompts=10"};
  const auto with = [&](const std::string& last) {
    std::vector<std::string> all = sets;
    all.push_back(last);
    return lease_warnings(example(all), {"B"});
  };
  EXPECT_THAT(with("store.master.kv_lease_ttl_ms=10000"),
              testing::ElementsAre(testing::AllOf(testing::StartsWith("arm B, phase r1, estimated: a lease of 10 s x "),
                                                  testing::HasSubstr("pins 10 MB, more than the 8 MiB of DRAM"))));
  EXPECT_THAT(with("store.master.kv_lease_ttl_ms=60000"), testing::SizeIs(1)) << "the worst phase is enough";
  EXPECT_THAT(with("store.master.kv_lease_ttl_ms=1"), testing::IsEmpty());
  EXPECT_THAT(with("arms.B.policy.probe_lease=none"), testing::IsEmpty());
}

TEST(LeasePressure, OfATraceIsThatOfItsArrivals) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "pressure.jsonl";
  std::ofstream out(file);
  for (int i = 0; i < 20; ++i) {  // two a second, 16 MB each
    out << R"({"timestamp": )" << i * 500 << R"(, "input_length": 16, "output_length": 1, "hash_ids": [)" << i
        << "]}\n";
  }
  out.close();
  const auto with = [&](std::int64_t lease_ms) {
    const std::string text =
        R"({"cluster": {"hosts": [{"segment_bytes": "64MiB"}]}, "engine": {"bytes_per_token": 1000000, "block_tokens": 16},
        "workload": {"trace": {"block_tokens": 16}, "phases": [{"name": "x", "kind": "open_loop", "measured": true}]}})";
    return lease_warnings(
        scenario_of(text, "s.json",
                    {{"workload.trace.path", file.string()}, {"store.master.kv_lease_ttl_ms", lease_ms}}),
        {});
  };
  EXPECT_THAT(with(1000), testing::IsEmpty());
  EXPECT_THAT(with(4000),
              testing::ElementsAre(testing::StartsWith("arm base, phase x, estimated: a lease of 4 s x 2.11")));
}

TEST(RequestLog, OneLinePerRequest) {
  const Scenario s = example();
  const ExperimentResult result = run_experiment(s, kDrivers, {"sim", {"B"}, 2, 1, {}});
  std::ostringstream lines;
  write_requests(lines, result);
  std::istringstream in(lines.str());
  std::string line;
  int count = 0;
  while (std::getline(in, line)) {
    const Json request = Json::parse(line);
    EXPECT_EQ(request["arm"], "B");
    ++count;
  }
  EXPECT_EQ(count, 2 * 8);
}

TEST(RequestLog, TheTimelineIsATraceWhoseSpansNest) {
  const Scenario s = example();
  std::ostringstream out;
  write_timeline(out, run_experiment(s, kDrivers, {"sim", {}, 1, 1, {}}));
  const Json trace = Json::parse(out.str());
  double end = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["pid"] != 1) continue;
    if (event["name"].get<std::string>().find(' ') != std::string::npos) {
      end = event["ts"].get<double>() + event["dur"].get<double>();
    } else {
      EXPECT_LE(event["ts"].get<double>() + event["dur"].get<double>(), end + 1e-6);
    }
  }
  EXPECT_GT(end, 0);
}

TEST(Sweep, ValuesAreSplitOutsideBrackets) {
  EXPECT_EQ(parse_vary("engine.ranks=1,2").values, (std::vector<Json>{1, 2}));
  EXPECT_EQ(parse_vary("workload.block_bytes=[1,2],[3]").values, (std::vector<Json>{Json{1, 2}, Json::array({3})}));
  EXPECT_EQ(parse_vary("cluster.hosts[0].segment_bytes=1MiB").values, (std::vector<Json>{"1MiB"}));
  EXPECT_THROW(parse_vary("engine.ranks="), UserError);
  EXPECT_THROW(parse_vary("engine.ranks=1,,2"), UserError);
}

TEST(Sweep, VariesParametersOnly) {
  for (const char* wrong : {"name=a,b", "baseline=A,B", "seeds=1,2", "based_on=x", "engin.ranks=1"})
    EXPECT_THROW(parse_vary(wrong), UserError) << wrong;
  EXPECT_EQ(parse_vary("arms.B.policy.get_wait=off").values.size(), 1U);
}

TEST(Sweep, OneRowPerValueAndArm) {
  const Vary vary = parse_vary("engine.max_num_seqs=1,2");
  std::vector<SweepPoint> points;
  for (const Json& value : vary.values)
    points.push_back({value, summary_of(example(), value == 1 ? "sim" : "refusing", 1)});
  EXPECT_EQ(sweep_csv(vary, points),
            "engine.max_num_seqs,phase,arm,ttft_mean_ms,baseline_ttft_mean_ms,exercised,decrease_ttft_mean,"
            "decrease_ttft_mean_ci95,decrease_ttft_p50,decrease_ttft_p50_ci95,decrease_ttft_p90,decrease_ttft_p90_ci95,"
            "decrease_ttft_p99,decrease_ttft_p99_ci95\n"
            "1,r1,B,1044.000000,1160.000000,true,0.100000,,0.100000,,0.100000,,0.100000,\n"
            "2,r1,B,1044.000000,1160.000000,false,,,,,,,,\n");
  EXPECT_THAT(sweep_table(vary, points), testing::HasSubstr("not exercised"));
  EXPECT_EQ(sweep_json(vary, points)["points"].size(), 2U);
}

}  // namespace
}  // namespace kvlift::experiment
