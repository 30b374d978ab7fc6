#include "traces/spread.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/assert.hpp"
#include "traces/error.hpp"

namespace kvlift {
namespace {

std::string_view name_of(SpreadSettings::Kind kind) {
  switch (kind) {
    case SpreadSettings::Kind::none:
      return "none";
    case SpreadSettings::Kind::even:
      return "even";
    case SpreadSettings::Kind::uniform:
      return "uniform";
  }
  return "";
}

std::string milliseconds_text(Duration d) { return std::to_string(d.ns / milliseconds(1).ns); }

}  // namespace

std::string to_text(const SpreadReport& report) {
  std::string text = std::to_string(report.requests) + " requests on " + std::to_string(report.distinct_stamps) +
                     (report.distinct_stamps == 1 ? " stamp" : " stamps");
  if (report.distinct_stamps > 1) {
    text += " " + milliseconds_text(report.shortest_gap) + " to " + milliseconds_text(report.longest_gap) + " ms apart";
  }
  return text + ", up to " + std::to_string(report.largest_tick) +
         " on one; spread: " + std::string(name_of(report.kind));
}

Spreader::Spreader(TraceSource source, SpreadSettings settings)
    : source_(std::move(source)), settings_(settings), random_(settings.seed) {
  report_.kind = settings.kind;
}

bool Spreader::next(TraceRequest& request) {
  if (settings_.kind == SpreadSettings::Kind::none) {
    if (!source_(request)) return false;
    count(request.arrival);
    return true;
  }
  if (given_ == size_ && !read_tick()) return false;
  std::swap(request, tick_[given_]);
  request.arrival = stamp_ + nanoseconds(offsets_ns_[given_]);
  ++given_;
  return true;
}

bool Spreader::read_tick() {
  if (!std::exchange(started_, true)) has_ahead_ = source_(ahead_);
  if (!has_ahead_) return false;
  const Time stamp = ahead_.arrival;
  size_ = given_ = 0;
  do {
    if (size_ == kTickRequestsMax) {
      throw TraceError("more than " + std::to_string(kTickRequestsMax) + " requests with the timestamp " +
                       std::to_string(stamp.ns / milliseconds(1).ns) + ": too many to be spread");
    }
    if (size_ == tick_.size()) tick_.emplace_back();
    std::swap(tick_[size_++], ahead_);
    count(stamp);
    has_ahead_ = source_(ahead_);
  } while (has_ahead_ && ahead_.arrival == stamp);
  if (has_ahead_) gap_ = ahead_.arrival - stamp;
  place_arrivals();
  return true;
}

void Spreader::place_arrivals() {
  KVLIFT_ASSERT(gap_.ns >= 0);
  offsets_ns_.resize(size_);
  if (settings_.kind == SpreadSettings::Kind::uniform) {
    for (std::int64_t& offset : offsets_ns_) {
      offset = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(gap_.ns)));
    }
    std::sort(offsets_ns_.begin(), offsets_ns_.end());
    return;
  }
  for (std::size_t i = 0; i < size_; ++i) {
    offsets_ns_[i] = static_cast<std::int64_t>(static_cast<__int128>(gap_.ns) * static_cast<std::int64_t>(i) /
                                               static_cast<std::int64_t>(size_));
  }
}

void Spreader::count(Time stamp) {
  if (report_.requests == 0 || stamp != stamp_) {
    if (report_.requests > 0) {
      const Duration gap = stamp - stamp_;
      report_.shortest_gap = report_.distinct_stamps == 1 ? gap : std::min(report_.shortest_gap, gap);
      report_.longest_gap = std::max(report_.longest_gap, gap);
    }
    stamp_ = stamp;
    ++report_.distinct_stamps;
    on_stamp_ = 0;
  }
  ++report_.requests;
  report_.largest_tick = std::max(report_.largest_tick, ++on_stamp_);
}

}  // namespace kvlift
