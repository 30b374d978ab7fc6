// What is stored comes back as it was or not at all: damage, crashes, removal, full disks, owners.
#include "real/ssd_store.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string_view>

#include "real/crc32c.hpp"
#include "real/error.hpp"
#include "tests/real/fake_kernel.hpp"
#include "tests/real/store_harness.hpp"

namespace kvlift::real {
namespace {

constexpr std::uint64_t kObject = 100'000;  // not a multiple of a page
const std::pair<Error, bool> kIntact{Error::OK, true};

void damage(const std::string& file, std::uint64_t at, const std::vector<char>& bytes) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(at));
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(stream.flush());
}

TEST(Crc32c, GivesTheCheckValueOfTheCatalogueWholeAndInTwoParts) {
  constexpr std::string_view text = "123456789";
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  EXPECT_EQ(crc32c(data, 9), 0xe3069283U);  // CRC-32/ISCSI in the catalogue of parametrised CRC algorithms
  EXPECT_EQ(crc32c(data + 4, 5, crc32c(data, 4)), 0xe3069283U);
}

TEST(Record, AnyChangedByteOfTheHeaderIsSeen) {
  const RecordHeader header{key(3), 7, kObject, 0x1234, 2, 8192, true};
  std::byte page[kPage];
  encode(header, page);
  ASSERT_EQ(decode(page), header);
  for (std::size_t i = 0; i < 72; ++i) {
    page[i] ^= std::byte{0x10};
    EXPECT_EQ(decode(page), std::nullopt) << "byte " << i;
    page[i] ^= std::byte{0x10};
  }
}

TEST(SsdStore, GivesBackWhatWasWrittenOfEachSize) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path());
  for (const std::uint64_t bytes : {1ULL, 4095ULL, 4096ULL, 4097ULL, 524'288ULL, 3'000'001ULL}) {
    EXPECT_EQ(under_test.write(bytes, 1, bytes), Error::OK) << bytes;
    EXPECT_EQ(under_test.read(bytes, 1, bytes), kIntact) << bytes;
  }
}

TEST(SsdStores, WhatAnAnswerMakesAStoreAskForIsSubmittedBeforeAnybodyWaits) {
  const TemporaryFolder folder;
  const FakeContent content;
  FakeKernelState kernel;
  kernel.pick = [](const auto& under_way) { return under_way.size(); };  // nothing ends
  Ring ring(std::make_unique<FakeKernel>(kernel, content), {});
  SsdStores stores(ring);
  SsdStore& store = stores.open(folder.path(), {.segment_bytes = 1U << 20});
  Arena arena(1U << 20);
  std::vector<SsdStores::Finished> finished;
  store.write(1, std::vector{SsdItem{key(1), 1, arena.data() + kPage, kObject}});
  stores.poll(Time{}, finished);
  ASSERT_FALSE(kernel.under_way.empty());
  std::size_t writes = kernel.under_way.size();
  kernel.pick = [&writes](const auto& under_way) { return writes-- > 0 ? std::size_t{0} : under_way.size(); };
  stores.poll(Time{}, finished);
  ASSERT_EQ(kernel.under_way.size(), 1U) << "the write is over, and what makes it durable is with the kernel";
  EXPECT_EQ(kernel.under_way[0].kind, KernelRequest::Kind::sync);
  EXPECT_TRUE(finished.empty());
  kernel.pick = [](const auto&) { return std::size_t{0}; };
  stores.poll(Time{}, finished);
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].done.token, 1U);
}

TEST(SsdStore, WhatIsNotThereOrOfAnotherLengthIsAnError) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path());
  ASSERT_EQ(under_test.write(1, 1, kObject), Error::OK);
  EXPECT_EQ(under_test.read(2, 1, kObject).first, Error::INVALID_KEY);
  EXPECT_EQ(under_test.read(1, 2, kObject).first, Error::INVALID_KEY);
  EXPECT_EQ(under_test.read(1, 1, kObject + 1).first, Error::INVALID_PARAMS);
}

TEST(SsdStore, OneMissingObjectFailsAloneInItsBatch) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path());
  ASSERT_TRUE(under_test.write({under_test.item(1, 1, 5000), under_test.item(3, 1, 5000)}).failed.empty());
  const std::vector<SsdItem> items{under_test.item(1, 1, 5000), under_test.item(2, 1, 5000),
                                   under_test.item(3, 1, 5000)};
  under_test.store().read(2, items, true);
  EXPECT_EQ(under_test.wait_for(2).failed, (std::vector<std::pair<std::uint32_t, Error>>{{1, Error::INVALID_KEY}}));
  EXPECT_TRUE(StoreUnderTest::filled(items[0]) && StoreUnderTest::filled(items[2]));
}

TEST(SsdStore, FindsEverythingAfterACrashAndNothingThatWasForgotten) {
  TemporaryFolder folder;
  {
    StoreUnderTest before(folder.path());
    for (std::uint64_t n = 0; n < 30; ++n) ASSERT_EQ(before.write(n, 1, kObject), Error::OK);
    for (std::uint64_t n = 0; n < 30; n += 3) before.store().forget(key(n), 1);
    before.settle();
  }
  StoreUnderTest after(folder.path());
  EXPECT_EQ(after.store().counters().recovered, 20U);
  for (std::uint64_t n = 0; n < 30; ++n) {
    const auto got = after.read(n, 1, kObject);
    if (n % 3 == 0) {
      EXPECT_EQ(got.first, Error::INVALID_KEY) << n;
    } else {
      EXPECT_EQ(got, kIntact) << n;
    }
  }
}

TEST(SsdStore, AfterACrashTheHighestVersionOfAKeyWins) {
  TemporaryFolder folder;
  {
    StoreUnderTest before(folder.path());
    ASSERT_EQ(before.write(1, 5, 5000), Error::OK);
    ASSERT_EQ(before.write(1, 9, 6000), Error::OK);
    ASSERT_EQ(before.write(1, 7, 7000), Error::OK);
  }
  StoreUnderTest after(folder.path());
  ASSERT_EQ(after.store().objects().size(), 1U);
  EXPECT_EQ(after.store().counters().dropped, 2U);
  EXPECT_EQ(after.read(1, 9, 6000), kIntact);
  after.settle();
}

TEST(SsdStore, ADamagedByteIsAnErrorAndOneRecordLessAfterACrash) {
  TemporaryFolder folder;
  {
    StoreUnderTest before(folder.path());
    for (std::uint64_t n = 0; n < 3; ++n) ASSERT_EQ(before.write(n, 1, kObject), Error::OK);
    damage(folder.segments().front(), record_bytes(kObject) + kPage + 50'000, {'\x55', '\x55'});
    EXPECT_EQ(before.read(1, 1, kObject).first, Error::CHECKSUM_MISMATCH);
    EXPECT_EQ(before.store().counters().mismatches, 1U);
    EXPECT_EQ(before.read(2, 1, kObject), kIntact);
  }
  StoreUnderTest after(folder.path());
  EXPECT_EQ(after.store().counters().dropped, 1U);
  EXPECT_EQ(after.read(0, 1, kObject), kIntact);
  EXPECT_EQ(after.read(1, 1, kObject).first, Error::INVALID_KEY);
  EXPECT_EQ(after.read(2, 1, kObject), kIntact);
}

TEST(SsdStore, ARecordCopiedToAnotherPlaceIsNotTaken) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path());
  ASSERT_EQ(under_test.write(1, 1, 4096), Error::OK);
  ASSERT_EQ(under_test.write(2, 1, 4096), Error::OK);
  std::ifstream stream(folder.segments().front(), std::ios::binary);
  std::vector<char> first(record_bytes(4096));
  ASSERT_TRUE(stream.read(first.data(), static_cast<std::streamsize>(first.size())));
  damage(folder.segments().front(), record_bytes(4096), first);
  EXPECT_EQ(under_test.read(2, 1, 4096).first, Error::CHECKSUM_MISMATCH);
}

TEST(SsdStore, ATruncatedFileIsAnErrorNotOtherBytes) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path());
  ASSERT_EQ(under_test.write(1, 1, kObject), Error::OK);
  std::filesystem::resize_file(folder.segments().front(), 50'000);
  EXPECT_EQ(under_test.read(1, 1, kObject).first, Error::FILE_READ_FAIL);
}

TEST(SsdStore, ASegmentGoesWithItsLastObject) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path());
  for (std::uint64_t n = 0; n < 20; ++n) ASSERT_EQ(under_test.write(n, 1, kObject), Error::OK);  // 9 in a segment
  ASSERT_EQ(folder.segments().size(), 3U);
  for (std::uint64_t n = 0; n < 9; ++n) under_test.store().forget(key(n), 1);
  under_test.settle();
  EXPECT_EQ(folder.segments().size(), 2U);
  EXPECT_EQ(under_test.store().bytes_on_disk(), 2U << 20);
  EXPECT_EQ(under_test.read(9, 1, kObject), kIntact);
}

TEST(SsdStore, WrittenAgainUnderTheSameVersionTheLaterBytesCount) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path());
  ASSERT_EQ(under_test.write(1, 1, 5000), Error::OK);
  ASSERT_EQ(under_test.write(1, 1, 9000), Error::OK);
  EXPECT_EQ(under_test.read(1, 1, 9000), kIntact);
  EXPECT_EQ(under_test.store().objects().size(), 1U);
  under_test.settle();
}

TEST(SsdStore, ForgottenWhileItIsWrittenIsNotKept) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path());
  const SsdItem item = under_test.item(1, 1, kObject);
  StoreUnderTest::fill(item);
  under_test.store().write(1, std::vector{item});
  under_test.store().forget(key(1), 1);
  EXPECT_TRUE(under_test.wait_for(1).failed.empty());
  EXPECT_TRUE(under_test.store().objects().empty());
  under_test.settle();
}

TEST(SsdStore, BeyondItsQuotaOnePutFailsAndReadsGoOn) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path(), {.segment_bytes = 1U << 20, .quota_bytes = 2U << 20});
  for (std::uint64_t n = 0; n < 18; ++n) ASSERT_EQ(under_test.write(n, 1, kObject), Error::OK);
  EXPECT_EQ(under_test.write(18, 1, kObject), Error::KEYS_ULTRA_LIMIT);
  EXPECT_EQ(under_test.read(0, 1, kObject), kIntact);
  for (std::uint64_t n = 0; n < 9; ++n) under_test.store().forget(key(n), 1);
  under_test.settle();
  EXPECT_EQ(under_test.write(18, 1, kObject), Error::OK);
}

TEST(SsdStore, MoreWritesAtATimeThanItHasPagesAllEnd) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path(), {.segment_bytes = 1U << 20, .sync = false, .writes_max = 2});
  std::vector<SsdItem> items;
  for (std::uint64_t n = 0; n < 40; ++n) items.push_back(under_test.item(n, 1, 5000));
  EXPECT_TRUE(under_test.write(items).failed.empty());
  EXPECT_EQ(under_test.store().objects().size(), 40U);
}

TEST(SsdFolder, HasOneOwnerAndItsFilesNoOtherReader) {
  TemporaryFolder folder;
  StoreUnderTest under_test(folder.path());
  ASSERT_EQ(under_test.write(1, 1, kObject), Error::OK);
  struct stat status {};
  ASSERT_EQ(stat(folder.segments().front().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  try {
    SsdFolder second(folder.path());
    FAIL() << "a second owner";
  } catch (const RealError& error) {
    EXPECT_NE(std::string(error.what()).find("in use by process " + std::to_string(getpid())), std::string::npos);
  }
}

TEST(SsdFolder, LeavesOtherFilesAlone) {
  TemporaryFolder folder;
  std::ofstream(folder.path() + "/segment-1x") << "not ours";
  std::ofstream(folder.path() + "/notes") << "not ours";
  { StoreUnderTest under_test(folder.path()); }
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/segment-1x"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/notes"));
}

}  // namespace
}  // namespace kvlift::real
