#include "cache/dispatch/snapshot.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <unordered_map>

namespace autotune {

/// Collects the rows of all stores, then lays them out.
class Snapshot::Builder {
public:
    void add(const RecordView& view) {
        const std::uint32_t problem = problem_of(view.problem_key);
        found_.push_back({problem, order_of(view), row_of(view)});
    }

    /// The order's texts go away with the scan of one store; what is kept is kept here.
    Snapshot finish() {
        std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
            if (a.problem != b.problem) return a.problem < b.problem;
            return compare(a.order, b.order) < 0;
        });
        for (const Found& found : found_) {
            Problem& problem = out_.problems_[found.problem];
            if (problem.row_count++ == 0) problem.first_row = static_cast<std::uint32_t>(out_.rows_.size());
            out_.rows_.push_back(found.row);
        }
        out_.keys_.shrink_to_fit();
        out_.problems_.shrink_to_fit();
        return std::move(out_);
    }

    Snapshot& out() noexcept { return out_; }

private:
    struct Found {
        std::uint32_t problem;
        OrderKey order;
        SnapshotRow row;
    };

    std::uint32_t problem_of(std::span<const std::byte> key) {
        if (out_.problems_.size() * 2 >= out_.slots_.size()) grow();
        const std::uint64_t hash = hash_bytes(key);
        const auto tag = static_cast<std::uint32_t>(hash >> 32);
        for (std::size_t at = hash & out_.mask_;; at = (at + 1) & out_.mask_) {
            Slot& slot = out_.slots_[at];
            if (slot.problem == no_problem) {
                slot = {tag, static_cast<std::uint32_t>(out_.problems_.size())};
                out_.problems_.push_back({.key_at = static_cast<std::uint32_t>(out_.keys_.size()), .key_size = static_cast<std::uint32_t>(key.size())});
                out_.keys_.insert(out_.keys_.end(), key.begin(), key.end());
                return slot.problem;
            }
            if (slot.tag == tag && std::ranges::equal(out_.key(out_.problems_[slot.problem]), key)) return slot.problem;
        }
    }

    void grow() {
        out_.slots_.assign(std::max<std::size_t>(16, out_.slots_.size() * 2), Slot{});
        out_.mask_ = out_.slots_.size() - 1;
        for (std::uint32_t i = 0; i < out_.problems_.size(); ++i) {
            const std::uint64_t hash = hash_bytes(out_.key(out_.problems_[i]));
            std::size_t at = hash & out_.mask_;
            while (out_.slots_[at].problem != no_problem) at = (at + 1) & out_.mask_;
            out_.slots_[at] = {static_cast<std::uint32_t>(hash >> 32), i};
        }
    }

    template <class T>
    static std::uint32_t intern(std::unordered_map<std::string, std::uint32_t>& ids, const std::string& name, std::vector<T>& values, const T& value) {
        const auto [at, is_new] = ids.emplace(name, static_cast<std::uint32_t>(values.size()));
        if (is_new) values.push_back(value);
        return at->second;
    }

    std::string_view kept(std::string_view text) { return texts_.emplace(std::string{text}, 0).first->first; }

    OrderKey order_of(const RecordView& view) {
        OrderKey order = view.order;
        order.config_hash = kept(order.config_hash);
        order.template_hash = kept(order.template_hash);
        order.run_uuid = kept(order.run_uuid);
        return order;
    }

    SnapshotRow row_of(const RecordView& view) {
        std::uint32_t stale = 0;
        if (!view.stale.empty()) stale = intern(reason_ids_, std::string{view.stale}, out_.reasons_, std::string{view.stale});
        // Config hashes leave out the variant.
        name_.assign(view.config->variant).append(" ").append(view.order.config_hash);
        const std::uint32_t config = intern(config_ids_, name_, out_.configs_, *view.config);
        return {.config = config,
                .source = intern(source_ids_, std::string{view.order.template_hash}, out_.sources_, *view.source),
                .stale = stale,
                .nvrtc_major = static_cast<std::int16_t>(view.id.nvrtc_major),
                .nvrtc_minor = static_cast<std::int16_t>(view.id.nvrtc_minor),
                .time_ns = view.time_ns,
                .default_ns = view.default_ns.value_or(0),
                .verified = view.verified,
                .imported = !view.order.local};
    }

    Snapshot out_;
    std::vector<Found> found_;
    std::unordered_map<std::string, std::uint32_t> config_ids_, source_ids_, reason_ids_, texts_;
    std::string name_;
};

Snapshot Snapshot::read(std::span<Store* const> stores, std::string_view op, std::string_view device_fp, const Today& today) {
    Builder builder;
    for (Store* store : stores) {
        try {
            store->scan({.op = std::string{op}, .device_fp = std::string{device_fp}}, today, [&](const RecordView& view) { builder.add(view); });
        } catch (const std::exception&) {
            builder.out().complete_ = false;  // locked just now, or damaged: what was read so far stands
        }
    }
    return builder.finish();
}

std::size_t Snapshot::bytes() const noexcept {
    return slots_.capacity() * sizeof(Slot) + problems_.capacity() * sizeof(Problem) + rows_.capacity() * sizeof(SnapshotRow) + keys_.capacity();
}

}  // namespace autotune
