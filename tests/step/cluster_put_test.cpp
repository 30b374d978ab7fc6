// Batch put and remove.
#include "tests/step/store_harness.hpp"

namespace kvlift::step {
namespace {

/// One node whose DRAM holds sixteen objects, all of them on SSD too: a put finds no room before an eviction.
Store full_store(std::int64_t retries) {
  StoreSetup setup = small_store(1, kBlock * 16);
  setup.plan.store.master.eviction_high_watermark_ratio = 1;
  setup.plan.store.client.put_retry_max = retries;
  Store store(setup);
  store.put(kNode0, items(0, 16));
  store.run_for(seconds(1));
  return store;
}

TEST(Put, ThatFindsNoRoomTriesAgainUntilAnEvictionHasMadeSome) {  // RC-44
  Store store = full_store(3);
  const OpResult put = store.put(kNode0, items(100, 4));
  for (const KeyOutcome& k : put.keys) EXPECT_EQ(k.error, Error::OK);
  EXPECT_GE(store.counters().put_retries, 1U);
  EXPECT_EQ(store.counters().put_keys_refused, 0U);
  expect_clean(store);
}

TEST(Put, WithoutRetriesIsRefusedUnderPressure) {
  Store store = full_store(0);
  const OpResult put = store.put(kNode0, items(100, 4));
  for (const KeyOutcome& k : put.keys) EXPECT_EQ(k.error, Error::NO_AVAILABLE_HANDLE);
  EXPECT_EQ(store.counters().put_keys_refused, 4U);
  expect_clean(store);
}

TEST(Put, ARetryDoesNotStartKeysTwiceThatHaveRoomAlready) {
  StoreSetup setup = small_store(1, kBlock * 2);
  setup.plan.store.master.eviction_high_watermark_ratio = 1;
  Store store(setup);
  const OpResult put = store.put(kNode0, items(0, 3));  // two fit, under the put's own pin; the third never does
  EXPECT_EQ(put.keys[0].error, Error::OK);
  EXPECT_EQ(put.keys[1].error, Error::OK);
  EXPECT_EQ(put.keys[2].error, Error::NO_AVAILABLE_HANDLE);
  EXPECT_EQ(store.master_counters().put_started, 2U);
  EXPECT_EQ(store.counters().put_retries, 3U);
  expect_clean(store);
}

TEST(Put, AnObjectThatExistsCountsAsStored) {
  Store store(small_store());
  store.put(kNode0, items(0, 2));
  const OpResult put = store.put(kNode1, items(0, 3));
  for (const KeyOutcome& k : put.keys) EXPECT_EQ(k.error, Error::OK);
  EXPECT_EQ(store.counters().put_keys_exist, 2U);
  EXPECT_EQ(store.counters().put_keys_stored, 3U);
  expect_clean(store);
}

TEST(Put, AFailedWriteIsRevokedAndMayBePutAgain) {
  for (const Alteration& how : {Alteration{.error = Error::TRANSFER_FAIL}, Alteration{.bytes = Bytes{1}}}) {
    Store store(small_store());
    store.alter(transfer(Component::put), how);
    EXPECT_EQ(store.put(kNode0, items(0, 1)).keys[0].error, Error::TRANSFER_FAIL);
    EXPECT_EQ(store.master_counters().put_revoked, 1U);
    EXPECT_EQ(store.view(key(0)).error, Error::OBJECT_NOT_FOUND);
    EXPECT_EQ(store.master().dram(store.now()).allocated, Bytes{0});
    EXPECT_EQ(store.put(kNode0, items(0, 1)).keys[0].error, Error::OK);
    expect_clean(store);
  }
}

TEST(Put, IsNotVisibleBeforeItsEnd) {
  Store store(small_store());
  store.alter(transfer(Component::put), {.held = true});
  const OpToken put = store.start_put(kNode0, items(0, 1));
  store.run_for(milliseconds(100));
  EXPECT_NE(store.view(key(0)).error, Error::OK);
  EXPECT_EQ(store.probe(kNode1, keys(0, 1)).present, std::vector<bool>{false});
  store.release_held();
  EXPECT_EQ(store.finish(put).keys[0].error, Error::OK);
  EXPECT_EQ(store.probe(kNode1, keys(0, 1)).present, std::vector<bool>{true});
  expect_clean(store);
}

TEST(Put, AnUnansweredEndIsReportedAsAnErrorThoughTheObjectStands) {
  Store store(small_store());
  store.alter(reply(Component::put).after(1), {.error = Error::RPC_TIMEOUT});
  EXPECT_EQ(store.put(kNode0, items(0, 1)).error, Error::RPC_TIMEOUT);
  EXPECT_EQ(store.view(key(0)).error, Error::OK);
  expect_clean(store);
}

TEST(Put, DeliveredTwiceIsPutOnce) {
  Store store(small_store());
  store.alter(request(Component::put), {.twice = true}, 2);
  EXPECT_EQ(store.put(kNode0, items(0, 2)).keys[0].error, Error::OK);
  EXPECT_EQ(store.get(kNode0, items(0, 2)).keys[1].error, Error::OK);
  EXPECT_EQ(store.counters().put_keys_stored, 2U);
  expect_clean(store);
}

TEST(Put, OfAnObjectLargerThanTheSegmentIsRefusedAlone) {
  Store store(small_store(1, mebibytes(1)));
  const OpResult put = store.put(kNode0, {items(0, 1)[0], items(1, 1, mebibytes(2))[0]});
  EXPECT_EQ(put.keys[0].error, Error::OK);
  EXPECT_EQ(put.keys[1].error, Error::NO_AVAILABLE_HANDLE);
  expect_clean(store);
}

TEST(Remove, AnObjectUnderLeaseStays) {
  Store store(small_store());
  store.put(kNode0, items(0, 1));
  store.probe(kNode0, keys(0, 1));
  EXPECT_EQ(store.remove(kNode0, key(0)).error, Error::OBJECT_HAS_LEASE);
  EXPECT_EQ(store.remove(kNode0, key(5)).error, Error::OBJECT_NOT_FOUND);
  expect_clean(store);
}

}  // namespace
}  // namespace kvlift::step
