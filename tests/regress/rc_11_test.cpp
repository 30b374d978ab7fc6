// RC-11: a tenant other than the default promoted a key and its staging was looked up in the default tenant.
#include "tests/core/master_world.hpp"

namespace kvlift {
namespace {

TEST(RC11, a_promotion_is_of_the_tenants_own_object_from_registration_to_commit) {
  MasterWorld w;
  ObjectKey mine = key(1);
  mine.tenant = TenantId{3};
  const std::vector<OffloadReport> reports{{mine, kBlock, 0}};
  ASSERT_EQ(w.master.notify_offload(kNode0, reports, w.now), Error::OK);
  EXPECT_EQ(w.enrol(1), Error::OBJECT_NOT_FOUND) << "the same key of the default tenant";
  ASSERT_EQ(w.master.register_prefetch_task(kNode0, mine, w.now), Error::OK);
  EXPECT_EQ(w.allocate(1), Error::OBJECT_NOT_FOUND);
  ASSERT_TRUE(w.master.promotion_alloc_start(kNode0, mine, kBlock, w.now).ok());
  EXPECT_EQ(w.commit(1), Error::OBJECT_NOT_FOUND);
  ASSERT_EQ(w.master.notify_promotion_success(kNode0, mine, w.now), Error::OK);
  EXPECT_TRUE(w.master.query_read_only(kNode0, mine).in_memory);
}

TEST(RC11, on_hit_hands_out_the_key_with_its_tenant) {
  MasterWorld::Setup setup{.policy = on_hit_policy()};
  setup.settings.promotion_admission_threshold = 1;
  MasterWorld w(setup);
  ObjectKey mine = key(1);
  mine.tenant = TenantId{3};
  const std::vector<OffloadReport> reports{{mine, kBlock, 0}};
  ASSERT_EQ(w.master.notify_offload(kNode0, reports, w.now), Error::OK);
  (void)w.master.query(kNode0, mine, w.now);
  std::vector<PromotionTask> tasks;
  w.master.pull_promotions(kNode0, w.now, tasks);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].key, mine);
}

}  // namespace
}  // namespace kvlift
