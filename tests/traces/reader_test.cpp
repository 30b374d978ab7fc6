// A whole file: its lines, its packing, its order.
#include "traces/reader.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/traces/trace_text.hpp"

namespace kvlift {
namespace {

std::string lines(int count, const std::string& end = "\n") {
  std::string text;
  for (int i = 0; i < count; ++i) text += line_at(i) + end;
  return text;
}

TEST(Reader, LinesAreReadInOrder) {
  const auto requests = read_all(lines(3));
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[2], (TraceRequest{Time{2'000'000}, {150}, {7}, {0, 1}}));
}

TEST(Reader, ALastLineWithoutItsEndCounts) { EXPECT_EQ(read_all(lines(2) + line_at(2)).size(), 3U); }

TEST(Reader, LinesMayEndAsOnWindows) { EXPECT_EQ(read_all(lines(3, "\r\n")).size(), 3U); }

TEST(Reader, EqualStampsAreInOrder) { EXPECT_EQ(read_all(line_at(4) + "\n" + line_at(4)).size(), 2U); }

TEST(Reader, GzipIsKnownByItsFirstBytes) {
  EXPECT_EQ(read_all(gzip(lines(5))), read_all(lines(5)));
  Folder folder;
  std::ofstream(folder / "named-as-text.jsonl", std::ios::binary) << gzip(lines(5));
  std::ofstream(folder / "named-as-packed.gz", std::ios::binary) << lines(5);
  for (const char* name : {"named-as-text.jsonl", "named-as-packed.gz"}) {
    TraceReader reader(folder / name, kBlock);
    TraceRequest request;
    while (reader.next(request)) {
    }
    EXPECT_EQ(reader.line(), 5) << name;
  }
}

TEST(Reader, GzipMembersOneAfterTheOtherAreOneFile) {
  EXPECT_EQ(read_all(gzip(line_at(0) + "\n" + line_at(1).substr(0, 9)) + gzip(line_at(1).substr(9) + "\n")).size(), 2U);
}

TEST(Reader, LinesLongerThanTheReadingChunkAreWhole) {
  std::string ids = "0";
  for (int i = 1; i < 200'000; ++i) ids += ", " + std::to_string(i);
  const std::string line =
      R"({"timestamp": 1, "input_length": 20000000, "output_length": 7, "hash_ids": [)" + ids + "]}\n";
  ASSERT_GT(line.size(), std::size_t{1} << 20);
  for (const std::string& bytes : {lines(1) + line + line_at(2), gzip(lines(1) + line + line_at(2))}) {
    const auto requests = read_all(bytes);
    ASSERT_EQ(requests.size(), 3U);
    EXPECT_EQ(requests[1].hash_ids.size(), 200'000U);
    EXPECT_EQ(requests[1].hash_ids.back(), 199'999U);
    EXPECT_EQ(requests[2].arrival.ns, 2'000'000);
  }
}

TEST(Reader, ABadLineIsNamedByFileAndNumber) {
  EXPECT_EQ(error_of(lines(2) + "{\"timestamp\": 2}\n" + lines(1)), "t:3: input_length: is missing");
}

TEST(Reader, StampsThatGoBackAreAnError) {
  EXPECT_EQ(error_of(line_at(7) + "\n" + line_at(6)),
            "t:2: timestamp: expected at least 7, the line before's (a trace is in order of arrival), found 6");
}

TEST(Reader, AnEmptyLineIsAnErrorAlsoAtTheEnd) {
  EXPECT_EQ(error_of(lines(1) + "\n" + line_at(1)), "t:2: the line is empty, expected a request");
  EXPECT_EQ(error_of(lines(1) + "\n"), "t:2: the line is empty, expected a request");
  EXPECT_EQ(error_of(lines(1) + "\r\n"), "t:2: the line is empty, expected a request");
}

TEST(Reader, AnEmptyFileIsAnErrorPackedOrNot) {
  EXPECT_EQ(error_of(""), "t: the file is empty, a trace has at least one line");
  EXPECT_EQ(error_of(gzip("")), "t: the file is empty, a trace has at least one line");
}

TEST(Reader, ALineBeyondTheBoundIsRefusedAndOneAtItIsRead) {
  const std::size_t length = line_at(0).size();
  EXPECT_EQ(error_of(lines(2), kBlock, length), "");
  EXPECT_EQ(error_of(lines(1) + line_at(10), kBlock, length),
            "t:2: the line is longer than " + std::to_string(length) + " bytes");
  EXPECT_EQ(error_of(std::string(100'000, 'x'), kBlock, 1000), "t:1: the line is longer than 1000 bytes");
}

TEST(Reader, ABombOfGzipStopsAtTheBound) {
  EXPECT_EQ(error_of(gzip(std::string(8 << 20, ' ')), kBlock, 1 << 20), "t:1: the line is longer than 1048576 bytes");
}

TEST(Reader, GzipThatEndsEarlyIsAnErrorAtEveryLength) {
  const std::string whole = gzip(lines(20));
  for (std::size_t length = 2; length < whole.size(); ++length) {
    EXPECT_EQ(error_of(whole.substr(0, length)), "t: gzip data end early: the file is truncated") << length;
  }
}

TEST(Reader, DamagedGzipIsAnError) {
  std::string bytes = gzip(lines(20));
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 1);  // checksum
  EXPECT_EQ(error_of(bytes), "t: gzip data are damaged: incorrect data check");
}

TEST(Reader, BytesAfterGzipAreAnError) {
  EXPECT_EQ(error_of(gzip(lines(2)) + "x"), "t: bytes after the end of the gzip data");
  EXPECT_EQ(error_of(gzip(lines(2)) + lines(1)), "t: bytes after the end of the gzip data");
}

TEST(Reader, AByteOrderMarkIsAnErrorInEveryLine) {
  EXPECT_EQ(error_of("\xef\xbb\xbf" + lines(1)),
            "t:1: the line starts with a byte order mark; a trace is UTF-8 without one");
  EXPECT_EQ(error_of(lines(1) + "\xef\xbb\xbf" + line_at(1)),
            "t:2: the line starts with a byte order mark; a trace is UTF-8 without one");
}

TEST(Reader, TheBlockSizeIsNeverGuessed) {
  EXPECT_EQ(error_of(lines(1), Tokens{0}), "t: a block must have at least 1 token, not 0");
  EXPECT_EQ(error_of(lines(1), Tokens{512}),
            "t:1: hash_ids: expected 1 ids, because input_length is 150 and a block has 512 tokens, found 2");
}

TEST(Reader, AFileThatCannotBeReadIsNamedWithTheReason) {
  Folder folder;
  const std::string absent = folder / "absent.jsonl";
  try {
    TraceReader reader(absent, kBlock);
    FAIL();
  } catch (const TraceError& error) {
    EXPECT_EQ(error.what(), absent + ": cannot be read: No such file or directory");
  }
  const std::string directory = folder / "";
  try {
    TraceReader reader(directory, kBlock);
    FAIL();
  } catch (const TraceError& error) {
    EXPECT_EQ(error.what(), directory + ": cannot be read: Is a directory");
  }
}

}  // namespace
}  // namespace kvlift
