#ifndef AUTOTUNE_TUNER_WORKER_FRAME_H
#define AUTOTUNE_TUNER_WORKER_FRAME_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tuner/worker/fd.h"

namespace autotune {

// How the tuner and its workers talk: frames over a Unix socket pair. A frame is a header of 16 bytes (magic, type,
// length of the body, flags; little-endian) and a CBOR body of at most 1 MiB; descriptors of sealed memory travel with
// the header. A body beyond 64 KiB travels as sealed memory itself, so a send never waits for a slow reader.

inline constexpr std::uint32_t frame_magic = 0x31465441;  // "ATF1"
inline constexpr std::size_t frame_header_bytes = 16;
inline constexpr std::size_t frame_body_limit = 1u << 20;
inline constexpr std::size_t frame_inline_limit = 1u << 16;
inline constexpr std::uint64_t frame_memory_limit = 1ull << 28;  ///< of a body that travels as memory
inline constexpr std::size_t frame_fd_limit = 64;
inline constexpr std::uint32_t frame_body_in_memory = 1;  ///< flag: the last descriptor is the body
inline constexpr std::size_t cbor_depth_limit = 32;

/// The peer is gone, or sent something that is no frame: its process is to be ended.
class FrameError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// One message. `body` is CBOR.
struct Frame {
    std::uint32_t type = 0;
    std::vector<std::byte> body;
    std::vector<Fd> fds;

    /// Throws FrameError unless the body is CBOR of sane depth.
    nlohmann::json json() const;
};

/// Puts frames together from whatever bytes arrive. It believes nothing: no claim of the peer makes it allocate more
/// than arrived, and a body holds at most 1 MiB (256 MiB as sealed memory).
class FrameReader {
public:
    /// Takes bytes and descriptors as they came. Throws FrameError on a header that is none.
    void take(std::span<const std::byte> bytes, std::vector<Fd> fds = {});
    /// The next whole frame.
    std::optional<Frame> next();
    /// Reads once what a socket holds without waiting. False: nothing was there. Throws FrameError at the end of the
    /// stream.
    bool read_from(int socket);
    /// Waits for the next frame. Throws FrameError at the end of the stream.
    Frame wait(int socket);

private:
    void check_header();
    std::vector<std::byte> pending_;
    std::size_t begin_ = 0;  ///< of what is not consumed yet
    std::vector<Fd> fds_;
};

/// Sends one frame; throws FrameError when the peer is gone or takes nothing for 10 s.
void send_frame(int socket, std::uint32_t type, const nlohmann::json& body, std::span<const int> fds = {});

/// Two connected stream sockets, close-on-exec.
std::pair<Fd, Fd> socket_pair();

/// Decodes hostile CBOR. Throws FrameError.
nlohmann::json decode_cbor(std::span<const std::byte> bytes);

}  // namespace autotune
#endif
