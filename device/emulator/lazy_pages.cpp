#include "device/emulator/lazy_pages.h"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

namespace autotune::emulator {
namespace {

constexpr std::uint64_t page_bytes = 4096, made_at_once = 64 << 10;

std::vector<LazyPages*>& living_pages() {
    static std::vector<LazyPages*> all;
    return all;
}

struct sigaction action_before;

/// The access is tried again on return: once its page is made it goes on, else it meets the handler of before.
void on_fault(int, siginfo_t* info, void*) {
    for (LazyPages* pages : living_pages())
        if (pages->touch(info->si_addr)) return;
    sigaction(SIGSEGV, &action_before, nullptr);
}

void watch_faults() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &action_before);
}

std::byte* rounded(std::byte* at, std::uint64_t up, std::uint64_t to) {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uint64_t>(at) + up) / to * to);
}

}  // namespace

LazyPages::LazyPages(std::span<std::byte> memory, Make make) : memory_{memory}, make_{std::move(make)} {
    std::byte* const end = memory.data() + memory.size();
    first_ = std::min(rounded(memory.data(), page_bytes - 1, page_bytes), end);
    last_ = std::max(rounded(end, 0, page_bytes), first_);
    this->make(memory.data(), first_);
    this->make(last_, end);
    if (first_ == last_) return;
    if (mprotect(first_, static_cast<std::size_t>(last_ - first_), PROT_NONE) != 0)
        throw std::system_error{errno, std::generic_category(), "protecting emulated memory"};
    if (living_pages().empty()) watch_faults();
    living_pages().push_back(this);
}

LazyPages::~LazyPages() {
    if (std::erase(living_pages(), this) > 0) {
        mprotect(first_, static_cast<std::size_t>(last_ - first_), PROT_READ | PROT_WRITE);
        if (living_pages().empty()) sigaction(SIGSEGV, &action_before, nullptr);
    }
}

void LazyPages::make(std::byte* first, std::byte* last) {
    if (first >= last) return;
    make_({first, last}, static_cast<std::uint64_t>(first - memory_.data()));
    made_ += static_cast<std::uint64_t>(last - first);
}

bool LazyPages::touch(const void* address) {
    auto* const at = static_cast<std::byte*>(const_cast<void*>(address));
    if (at < first_ || at >= last_) return false;
    std::byte* const first = std::max(rounded(at, 0, made_at_once), first_);
    std::byte* const last = std::min(rounded(at, 0, made_at_once) + made_at_once, last_);
    if (mprotect(first, static_cast<std::size_t>(last - first), PROT_READ | PROT_WRITE) != 0) return false;
    make(first, last);
    return true;
}

}  // namespace autotune::emulator
