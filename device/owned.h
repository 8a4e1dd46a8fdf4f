#ifndef AUTOTUNE_DEVICE_OWNED_H
#define AUTOTUNE_DEVICE_OWNED_H

#include <utility>

namespace autotune {

/// Owns one handle of a C library: move-only, released exactly once.
/// `release` is the call that ends the handle's life, e.g. cuModuleUnload.
template <class Handle, auto release>
class Owned {
public:
    Owned() = default;
    explicit Owned(Handle handle) noexcept : handle_{handle} {}
    Owned(Owned&& other) noexcept : handle_{std::exchange(other.handle_, Handle{})} {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    /// The status is dropped: a release fails only when the context is broken, and the handle with it.
    ~Owned() {
        if (handle_ != Handle{}) release(handle_);
    }

    Handle get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != Handle{}; }
    /// Gives the handle up without releasing it: what is left to do where its context is lost.
    Handle abandon() noexcept { return std::exchange(handle_, Handle{}); }

private:
    Handle handle_{};
};

}  // namespace autotune
#endif
