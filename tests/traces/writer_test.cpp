// Files that come out whole, or not at all.
#include "traces/writer.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/traces/trace_text.hpp"
#include "traces/generator.hpp"

namespace kvlift {
namespace {

std::string written_line(const TraceRequest& request) {
  std::string text;
  append_line(request, text);
  return text;
}

void write(const std::string& path, Packing packing, const std::vector<TraceRequest>& requests) {
  TraceWriter writer(path, packing);
  for (const TraceRequest& request : requests) writer.write(request);
  writer.commit();
}

/// The message of a writer that cannot be opened.
std::string refusal(const std::string& path) {
  try {
    TraceWriter writer(path, Packing::plain);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

std::vector<TraceRequest> generated() {
  GeneratorSettings settings;
  settings.requests = 3'000;
  Generator generator(settings);
  std::vector<TraceRequest> requests;
  for (TraceRequest request; generator.next(request);) requests.push_back(request);
  return requests;
}

TEST(Writer, ALineIsThePublishedTracesText) {
  EXPECT_EQ(written_line({Time{} + milliseconds(27'000), {1000}, {7}, {0, 46}}),
            "{\"timestamp\": 27000, \"input_length\": 1000, \"output_length\": 7, \"hash_ids\": [0, 46]}\n");
}

TEST(Writer, ArrivalsAreRoundedToTheNearestMillisecond) {
  EXPECT_TRUE(written_line({Time{1'499'999}, {1}, {1}, {0}}).starts_with("{\"timestamp\": 1,"));
  EXPECT_TRUE(written_line({Time{1'500'000}, {1}, {1}, {0}}).starts_with("{\"timestamp\": 2,"));
}

TEST(Writer, WhatWasWrittenIsReadAgain) {
  Folder folder;
  const std::vector<TraceRequest> requests = generated();
  for (const Packing packing : {Packing::plain, Packing::gzip}) {
    write(folder / "t", packing, requests);
    EXPECT_EQ(read_all(bytes_of(folder / "t"), Tokens{512}), requests);
    EXPECT_EQ(bytes_of(folder / "t").starts_with("\x1f\x8b"), packing == Packing::gzip);
  }
}

TEST(Writer, ReadingAndWritingAgainGivesTheSameBytes) {
  Folder folder;
  for (const Packing packing : {Packing::plain, Packing::gzip}) {
    write(folder / "first", packing, generated());
    write(folder / "second", packing, read_all(bytes_of(folder / "first"), Tokens{512}));
    EXPECT_EQ(bytes_of(folder / "first"), bytes_of(folder / "second"));
  }
}

TEST(Writer, ThePublishedTraceComesOutByteForByte) {
  const std::string file = conversation_trace();
  if (file.empty()) GTEST_SKIP() << "the conversation trace is absent; set KVLIFT_SHARED";
  const std::string bytes = bytes_of(file);
  std::string text;
  for (const TraceRequest& request : read_all(bytes, Tokens{512})) append_line(request, text);
  EXPECT_TRUE(text == bytes);
}

TEST(Writer, WithoutCommitNothingIsLeft) {
  Folder folder;
  {
    TraceWriter writer(folder / "t", Packing::gzip);
    for (const TraceRequest& request : generated()) writer.write(request);
  }
  EXPECT_EQ(folder.files(), 0U);
}

TEST(Writer, TheOldFileStandsUntilTheNewOneIsWhole) {
  Folder folder;
  write(folder / "t", Packing::plain, {{Time{}, {1}, {1}, {0}}});
  const std::string old = bytes_of(folder / "t");
  TraceWriter writer(folder / "t", Packing::plain);
  writer.write({Time{}, {2}, {2}, {5}});
  EXPECT_EQ(bytes_of(folder / "t"), old);
  writer.commit();
  EXPECT_NE(bytes_of(folder / "t"), old);
  EXPECT_EQ(folder.files(), 1U);
}

TEST(Writer, ALinkKeepsBeingOne) {
  Folder folder;
  write(folder / "target", Packing::plain, {{Time{}, {1}, {1}, {0}}});
  std::filesystem::create_symlink(folder / "target", folder / "link");
  write(folder / "link", Packing::plain, {{Time{}, {2}, {2}, {5}}});
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_all(bytes_of(folder / "target")).front().hash_ids.front(), 5U);
}

TEST(Writer, WhatIsNoRegularFileIsNotReplaced) {
  Folder folder;
  const std::string directory = (folder / "d").string();
  std::filesystem::create_directory(directory);
  EXPECT_EQ(refusal(directory), directory + ": is not a regular file");
  EXPECT_EQ(refusal("/dev/null"), "/dev/null: is not a regular file");
}

TEST(Writer, APlaceThatCannotBeWrittenIsFoundAtOnce) {
  Folder folder;
  const std::string path = folder / "absent/t";
  EXPECT_EQ(refusal(path), path + ": cannot be written: No such file or directory");
}

}  // namespace
}  // namespace kvlift
