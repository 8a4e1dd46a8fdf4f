#include "tuner/worker/frame.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "autotune/error.h"

namespace autotune {
namespace {

using Json = nlohmann::json;

std::uint32_t word(const std::byte* at) {
    std::uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// Walks CBOR without building anything, so that nesting is bounded before the recursive parser sees it: a megabyte of
/// "array of one" would overflow the stack otherwise. Knows what our side writes: no tags, no indefinite lengths.
class CborWalk {
public:
    explicit CborWalk(std::span<const std::byte> bytes) : rest_{bytes} {}

    /// Whether the bytes are exactly one item, nested sanely.
    bool sane() {
        std::array<std::uint64_t, cbor_depth_limit> open{};  // items still to come, by depth
        std::size_t depth = 0;
        do {
            std::uint64_t children = 0;
            if (!item(children)) return false;
            if (children > 0) {
                if (depth == cbor_depth_limit) return false;
                open[depth++] = children;
                continue;
            }
            while (depth > 0 && --open[depth - 1] == 0) --depth;
        } while (depth > 0);
        return rest_.empty();
    }

private:
    /// One item's head and text. children: how many items follow inside.
    bool item(std::uint64_t& children) {
        if (rest_.empty()) return false;
        const auto head = std::to_integer<unsigned>(rest_[0]);
        const unsigned kind = head >> 5, detail = head & 31;
        rest_ = rest_.subspan(1);
        std::uint64_t value = detail;
        if (detail >= 24) {
            if (detail > 27 || kind == 6) return false;
            const std::size_t bytes = std::size_t{1} << (detail - 24);
            if (rest_.size() < bytes) return false;
            value = 0;
            for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint64_t>(rest_[i]);
            rest_ = rest_.subspan(bytes);
        }
        if (kind == 2 || kind == 3) {  // bytes, text
            if (value > rest_.size()) return false;
            rest_ = rest_.subspan(static_cast<std::size_t>(value));
        }
        if (kind == 4 || kind == 5) {  // array, map: no item is shorter than a byte
            children = kind == 5 ? 2 * value : value;
            if (value > rest_.size()) return false;
        }
        return kind != 6;
    }

    std::span<const std::byte> rest_;
};

void wait_for(int socket, short events, int timeout_ms, const char* what) {
    pollfd watched{.fd = socket, .events = events, .revents = 0};
    while (true) {
        const int ready = poll(&watched, 1, timeout_ms);
        if (ready > 0) return;
        if (ready == 0) throw FrameError{what};
        if (errno != EINTR) throw FrameError{fmt::format("polling a worker's socket failed: {}", std::strerror(errno))};
    }
}

/// One sendmsg; descriptors go with its first byte. Returns how many bytes went out.
std::size_t send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * frame_fd_limit)> control{};
    if (!fds.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
    }
    while (true) {
        const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) return static_cast<std::size_t>(sent);
        if (errno == EAGAIN)
            wait_for(socket, POLLOUT, 10'000, "a worker takes no messages");
        else if (errno != EINTR)
            throw FrameError{fmt::format("a worker's socket is closed: {}", std::strerror(errno))};
    }
}

std::vector<Fd> received_fds(msghdr& message) {
    std::vector<Fd> fds;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd;
            std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
            fds.emplace_back(fd);
        }
    }
    return fds;
}

}  // namespace

Json decode_cbor(std::span<const std::byte> bytes) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (!CborWalk{bytes}.sane()) throw FrameError{"a worker sent a body that is not CBOR"};
    Json body = Json::from_cbor(begin, begin + bytes.size(), true, false);
    if (body.is_discarded()) throw FrameError{"a worker sent a body that is not CBOR"};
    return body;
}

Json Frame::json() const { return decode_cbor(body); }

void FrameReader::take(std::span<const std::byte> bytes, std::vector<Fd> fds) {
    if (begin_ > 0 && begin_ == pending_.size()) {
        pending_.clear();
        begin_ = 0;
    }
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    if (fds_.size() + fds.size() > 2 * frame_fd_limit) throw FrameError{"a worker sent too many descriptors"};
    std::ranges::move(fds, std::back_inserter(fds_));
    check_header();
}

void FrameReader::check_header() {
    if (pending_.size() - begin_ < frame_header_bytes) return;
    const std::byte* head = pending_.data() + begin_;
    if (word(head) != frame_magic) throw FrameError{"a worker sent something that is no frame"};
    if (word(head + 8) > frame_body_limit)
        throw FrameError{fmt::format("a worker sent a frame of {} bytes", word(head + 8))};
    // Bits 8 and up of the flags count the descriptors, so that frames read together keep their own.
    if ((word(head + 12) >> 8) > frame_fd_limit) throw FrameError{"a worker sent too many descriptors"};
}

std::optional<Frame> FrameReader::next() {
    if (pending_.size() - begin_ < frame_header_bytes) return std::nullopt;
    const std::byte* head = pending_.data() + begin_;
    const std::size_t length = word(head + 8);
    const std::uint32_t flags = word(head + 12);
    const std::size_t fd_count = flags >> 8;
    if (pending_.size() - begin_ < frame_header_bytes + length) return std::nullopt;
    if (fds_.size() < fd_count) throw FrameError{"a worker's frame lacks its descriptors"};

    Frame frame{.type = word(head + 4), .body = {}, .fds = {}};
    frame.body.assign(head + frame_header_bytes, head + frame_header_bytes + length);
    std::move(fds_.begin(), fds_.begin() + static_cast<std::ptrdiff_t>(fd_count), std::back_inserter(frame.fds));
    fds_.erase(fds_.begin(), fds_.begin() + static_cast<std::ptrdiff_t>(fd_count));
    begin_ += frame_header_bytes + length;
    check_header();

    if (flags & frame_body_in_memory) {
        if (frame.fds.empty()) throw FrameError{"a worker's frame lacks its body"};
        try {
            const MappedMemory memory{frame.fds.back(), frame_memory_limit};
            frame.body.assign(memory.bytes().begin(), memory.bytes().end());
        } catch (const Error& e) {
            throw FrameError{e.what()};
        }
        frame.fds.pop_back();
    }
    return frame;
}

bool FrameReader::read_from(int socket) {
    std::array<std::byte, 1 << 16> buffer;
    iovec part{buffer.data(), buffer.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * frame_fd_limit)> control;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
        if (errno == EAGAIN || errno == EINTR) return false;
        throw FrameError{fmt::format("a worker's socket is closed: {}", std::strerror(errno))};
    }
    std::vector<Fd> fds = received_fds(message);
    if (got == 0) throw FrameError{"the worker ended"};
    if (message.msg_flags & MSG_CTRUNC) throw FrameError{"a worker sent too many descriptors"};
    take({buffer.data(), static_cast<std::size_t>(got)}, std::move(fds));
    return true;
}

Frame FrameReader::wait(int socket) {
    while (true) {
        if (std::optional<Frame> frame = next()) return std::move(*frame);
        if (!read_from(socket)) wait_for(socket, POLLIN, -1, "");
    }
}

void send_frame(int socket, std::uint32_t type, const Json& body, std::span<const int> fds) {
    const std::vector<std::uint8_t> cbor = Json::to_cbor(body);
    const std::span<const std::byte> bytes = std::as_bytes(std::span{cbor});
    std::vector<int> all{fds.begin(), fds.end()};
    Fd memory;
    if (bytes.size() > frame_inline_limit) {
        memory = sealed_memory(bytes);
        all.push_back(memory.get());
    }
    if (all.size() > frame_fd_limit) throw FrameError{fmt::format("a frame carries {} descriptors", all.size())};
    const std::span<const std::byte> inlined = memory ? std::span<const std::byte>{} : bytes;
    const std::uint32_t flags = (static_cast<std::uint32_t>(all.size()) << 8) | (memory ? frame_body_in_memory : 0u);
    const std::array<std::uint32_t, 4> header{frame_magic, type, static_cast<std::uint32_t>(inlined.size()), flags};

    std::vector<std::byte> whole(frame_header_bytes + inlined.size());
    std::memcpy(whole.data(), header.data(), frame_header_bytes);
    std::ranges::copy(inlined, whole.begin() + frame_header_bytes);
    std::size_t done = send_some(socket, whole, all);
    while (done < whole.size()) done += send_some(socket, std::span{whole}.subspan(done), {});
}

std::pair<Fd, Fd> socket_pair() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw Error{Error::Kind::internal, fmt::format("a socket pair could not be made: {}", std::strerror(errno))};
    return {Fd{ends[0]}, Fd{ends[1]}};
}

}  // namespace autotune
