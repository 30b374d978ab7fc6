// The SSD stores of several nodes on one ring.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "real/ring.hpp"
#include "real/ssd_store.hpp"

namespace kvlift::real {

class SsdStores {
 public:
  struct Finished {
    std::size_t store = 0;
    SsdDone done;
  };

  /// The ring must outlive the stores.
  explicit SsdStores(Ring& ring) : ring_(ring) {}

  /// Store number size(), on a folder of its own. Throws RealError as SsdStore does.
  SsdStore& open(const std::string& folder, const SsdStoreSettings& settings);
  SsdStore& operator[](std::size_t store) const { return *stores_[store]; }
  std::size_t size() const { return stores_.size(); }

  /// Sees to everything that has come, and appends the answers; never waits. Afterwards the kernel has all that the
  /// stores ask for: an answer may make a store ask for more, and to wait before that is submitted would be for long.
  void poll(Time now, std::vector<Finished>& finished);
  /// Nothing is under way, forgetting included.
  bool quiet() const;

 private:
  Ring& ring_;
  std::vector<std::unique_ptr<SsdStore>> stores_;
  std::vector<RingDone> ring_done_;
  std::vector<SsdDone> store_done_;
};

}  // namespace kvlift::real
