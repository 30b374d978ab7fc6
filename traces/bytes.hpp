// Bytes of a file, one after another, with gzip unpacked on the way. Memory is constant.
//
// Whether a file is gzip is read from its first two bytes (1f 8b), never from its name. Several gzip members one after
// the other are one file (RFC 1952); a member that ends early, a wrong checksum and bytes after the last member are
// errors.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace kvlift {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Up to `size` bytes; 0 only at the end. Throws TraceError that starts with the source's name.
  virtual std::size_t read(char* to, std::size_t size) = 0;
};

/// A file, or anything else that can be opened and read once. `read` unpacks it when it is gzip.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);
/// Bytes in memory under the name `name`, treated like a file's.
std::unique_ptr<ByteSource> bytes_in_memory(std::string bytes, std::string name);

}  // namespace kvlift
