#include "real/ssd_stores.hpp"

#include <algorithm>
#include <utility>

namespace kvlift::real {

SsdStore& SsdStores::open(const std::string& folder, const SsdStoreSettings& settings) {
  const auto owner = static_cast<std::uint16_t>(stores_.size() + 1);
  stores_.push_back(std::make_unique<SsdStore>(SsdFolder(folder), ring_, owner, settings));
  return *stores_.back();
}

void SsdStores::poll(Time now, std::vector<Finished>& finished) {
  do {
    ring_done_.clear();
    ring_.poll(now, ring_done_);
    for (std::size_t s = 0; s < stores_.size(); ++s) {
      store_done_.clear();
      for (const RingDone& done : ring_done_) {
        if (stores_[s]->mine(done)) stores_[s]->on(done, store_done_);
      }
      stores_[s]->poll(store_done_);
      for (SsdDone& done : store_done_) finished.push_back({s, std::move(done)});
    }
  } while (!ring_done_.empty());
}

bool SsdStores::quiet() const {
  return std::all_of(stores_.begin(), stores_.end(), [](const auto& store) { return store->quiet(); });
}

}  // namespace kvlift::real
