// What stands in a holder's staging arena, by key, so that one read of the SSD can serve everybody who wants it.
//
// A window is what one device read brings: one object of a promotion, several of a demand read. It has users, of which
// the first is the reader; others join by key, wait while the read is under way, and copy out of the same room.
//
//   reserve --> open --> reading --end_read--> standing --last leave--> free, or idle where windows are kept
//                           ^ join (waits)        ^ join                           idle --join--> standing
//                                                                                  idle --reserve of others--> free
//
// Room of a window with users is never given away (F10, RC-59). Without `shared` no key is found and a window is only
// its reader's.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/flat_map.hpp"
#include "core/slots.hpp"
#include "core/staging.hpp"

namespace kvlift {

/// Whoever waits for a read to end; given by the caller.
enum class StagingWaiter : std::uint64_t {};

class StagingTable {
 public:
  static constexpr std::uint32_t kNoWindow = 0xffffffff;

  struct Object {
    ObjectKey key;
    std::uint64_t version = 0;  ///< on SSD; other bytes of the same key are another object
    Bytes size;
    std::int64_t offset = 0;  ///< in the arena
    bool good = true;         ///< false: its part of the read failed
  };
  /// Where an object stands, or will when the window's read has ended.
  struct Loan {
    std::uint32_t window = kNoWindow;
    std::uint32_t entry = 0;
  };

  /// `shared`: keys are found; `kept`: windows without users stay until others need their room.
  StagingTable(Bytes capacity, bool shared, bool kept) : arena_(capacity), shared_(shared), kept_(kept) {}
  StagingTable(const StagingTable& other);
  StagingTable& operator=(const StagingTable& other) { return *this = StagingTable(other); }
  StagingTable(StagingTable&&) noexcept = default;
  StagingTable& operator=(StagingTable&&) noexcept = default;

  const StagingArena& arena() const { return arena_; }
  /// Room for one window; empty when users hold too much of the arena. `footprint` is at least 1.
  std::optional<Staged> reserve(Bytes footprint);
  /// Gives back room for which no window was opened.
  void release(Staged& staged) { arena_.release(staged); }

  /// The room belongs to a window now, which has one user and whose read begins.
  std::uint32_t open(const Staged& staged, std::span<const Object> objects);
  /// A window with these very bytes, if their read has not failed.
  std::optional<Loan> find(const ObjectKey& key, std::uint64_t version, Bytes size) const;
  /// One more user of the window.
  void join(std::uint32_t window);
  /// True, and the waiter will be named by end_read, when the window's read is under way.
  [[nodiscard]] bool wait(std::uint32_t window, StagingWaiter waiter);
  /// The read has ended; the entries of `failed` (ascending) have no bytes. Waiters come in the order of their joining.
  void end_read(std::uint32_t window, std::span<const std::uint32_t> failed, std::vector<StagingWaiter>& woken);
  /// One user less, who waits no longer if it did.
  void leave(std::uint32_t window, StagingWaiter waiter = {});
  const std::vector<Object>& objects_of(std::uint32_t window) const { return windows_[window].objects; }
  const Object& object(const Loan& loan) const { return windows_[loan.window].objects[loan.entry]; }

  /// Everybody who waits, in order of windows; the process is gone and ends no read.
  std::vector<StagingWaiter> take_waiters();
  /// Users of all windows.
  std::int64_t users() const { return users_; }

 private:
  struct Window {
    bool live = false;
    bool reading = false;
    std::int64_t users = 0;
    Staged staged;
    std::vector<Object> objects;
    std::vector<StagingWaiter> waiters;
    std::list<std::uint32_t>::iterator idle_at;  ///< while it has no users
  };
  void forget(std::uint32_t window);

  StagingArena arena_;
  bool shared_ = false, kept_ = false;
  Slots<Window> windows_;
  FlatMap<Loan> where_;
  std::list<std::uint32_t> idle_;  ///< longest idle first
  std::int64_t users_ = 0;
};

}  // namespace kvlift
