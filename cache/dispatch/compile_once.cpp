#include "cache/dispatch/compile_once.h"

#include <future>
#include <map>
#include <mutex>

#include "cache/store/key_lock.h"

namespace autotune {

namespace {

using Pending = std::shared_future<Binary>;

/// What this process compiles just now. A binary in memory is for one folder as good as for another.
struct PendingCompiles {
    std::mutex mutex;
    std::map<std::string, Pending, std::less<>> by_key;
};

PendingCompiles& pending_compiles() {
    static auto* const all = new PendingCompiles;  // threads may still compile while the process ends
    return *all;
}

Binary compile_unless_kept(const std::string& key, BinaryStore* keep_in, const std::function<Binary()>& compile,
                           std::chrono::milliseconds patience) {
    if (!keep_in) return compile();
    const KeyLock lock{keep_in->folder(), key, patience};
    if (auto kept = keep_in->get(key)) return std::move(*kept);  // by whoever held the lock before
    Binary binary = compile();
    keep_in->put(binary);  // what cannot be kept is compiled again another time
    return binary;
}

}  // namespace

Binary compile_once(const std::string& key, BinaryStore* keep_in, const std::function<Binary()>& compile,
                    std::chrono::milliseconds patience) {
    PendingCompiles& all = pending_compiles();
    std::promise<Binary> promise;
    Pending others;
    bool mine = false;
    {
        const std::lock_guard lock{all.mutex};
        const auto [at, is_new] = all.by_key.try_emplace(key);
        mine = is_new;
        if (mine)
            at->second = promise.get_future().share();
        else
            others = at->second;
    }
    if (!mine) {
        if (others.wait_for(patience) == std::future_status::ready) try {
                return others.get();
            } catch (...) {  // its trouble need not be ours: memory, a file handle
            }
        return compile();
    }
    const auto forget = [&] {
        const std::lock_guard lock{all.mutex};
        all.by_key.erase(key);
    };
    try {
        Binary binary = compile_unless_kept(key, keep_in, compile, patience);
        promise.set_value(binary);
        forget();
        return binary;
    } catch (...) {
        promise.set_exception(std::current_exception());
        forget();
        throw;
    }
}

}  // namespace autotune
