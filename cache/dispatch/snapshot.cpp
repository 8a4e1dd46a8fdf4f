#include "cache/dispatch/snapshot.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <unordered_map>
#include <unordered_set>

namespace autotune {

/// Collects the rows of all stores, then lays them out.
class Snapshot::Builder {
public:
    void add(const RecordView& view) {
        // Config hashes leave out the variant, and a template's hash is no config's.
        name_.assign(view.config->variant).append(" ").append(view.order.config_hash);
        const Part config = part_of(view.config, name_, view.order.config_hash, out_.configs_);
        const Part source = part_of(view.source, view.order.template_hash, view.order.template_hash, out_.sources_);
        OrderKey order = view.order;
        order.config_hash = config.hash;
        order.template_hash = source.hash;
        order.run_uuid = run_of(view);
        order.layer = static_cast<int>(layer_);
        // What an application brings along was measured where it was made.
        order.local = order.local && layer_ != Layer::embedded;
        found_.push_back({problem_of(view.problem_key),
                          order,
                          {.config = config.number,
                           .source = source.number,
                           .stale = reason_of(view.stale),
                           .nvrtc_major = static_cast<std::int16_t>(view.id.nvrtc_major),
                           .nvrtc_minor = static_cast<std::int16_t>(view.id.nvrtc_minor),
                           .time_ns = view.time_ns,
                           .default_ns = view.default_ns.value_or(0),
                           .verified = view.verified,
                           .imported = !order.local,
                           .layer = layer_}});
    }

    /// The addresses of one scan's parts mean nothing in the next.
    void next_scan(Layer layer) {
        parts_.clear();
        layer_ = layer;
    }

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
                out_.problems_.push_back({.key_at = static_cast<std::uint32_t>(out_.keys_.size()),
                                          .key_size = static_cast<std::uint32_t>(key.size())});
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

    /// A part that many rows share: its number here, and its hash, kept beyond the scan.
    struct Part {
        std::uint32_t number = 0;
        std::string_view hash{};
    };

    std::string_view kept(std::string_view text) { return *texts_.emplace(text).first; }

    /// A scan gives equal parts at one address, so texts are looked at once a part and store, not once a row.
    template <class T>
    const Part& part_of(const T* address, std::string_view name, std::string_view hash, std::vector<T>& values) {
        const auto [at, is_new] = parts_.try_emplace(address);
        if (!is_new) return at->second;
        const auto [number, unknown] = numbers_.emplace(std::string{name}, static_cast<std::uint32_t>(values.size()));
        if (unknown) values.push_back(*address);
        at->second = {number->second, kept(hash)};
        return at->second;
    }

    std::uint32_t reason_of(std::string_view stale) {
        if (stale.empty()) return 0;
        const auto [at, is_new] =
            reasons_.emplace(std::string{stale}, static_cast<std::uint32_t>(out_.reasons_.size()));
        if (is_new) out_.reasons_.emplace_back(stale);
        return at->second;
    }

    std::string_view run_of(const RecordView& view) {
        const auto [at, is_new] = parts_.try_emplace(view.run);
        if (is_new) at->second.hash = kept(view.order.run_uuid);
        return at->second.hash;
    }

    Snapshot out_;
    Layer layer_ = Layer::project;
    std::vector<Found> found_;
    std::unordered_map<const void*, Part> parts_;  ///< of the store that is being scanned
    std::unordered_map<std::string, std::uint32_t> numbers_, reasons_;
    std::unordered_set<std::string> texts_;
    std::string name_;
};

Snapshot Snapshot::read(std::span<const LayeredStore> stores, std::string_view op,
                        std::span<const std::string> device_fps, const Today& today) {
    Builder builder;
    for (const LayeredStore& layered : stores) {
        try {
            for (const std::string& fp : device_fps) {
                builder.next_scan(layered.layer);
                layered.store->scan({.op = std::string{op}, .device_fp = fp}, today,
                                    [&](const RecordView& view) { builder.add(view); });
            }
        } catch (const std::exception&) {
            builder.out().complete_ = false;  // locked just now, or damaged: what was read so far stands
        }
    }
    return builder.finish();
}

Snapshot Snapshot::read(std::span<Store* const> stores, std::string_view op, std::string_view device_fp,
                        const Today& today) {
    std::vector<LayeredStore> layered;
    for (Store* store : stores) layered.push_back({store});
    const std::string fps[] = {std::string{device_fp}};
    return read(layered, op, fps, today);
}

std::size_t Snapshot::bytes() const noexcept {
    return slots_.capacity() * sizeof(Slot) + problems_.capacity() * sizeof(Problem) +
           rows_.capacity() * sizeof(SnapshotRow) + keys_.capacity();
}

}  // namespace autotune
