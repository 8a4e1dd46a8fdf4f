#include "cache/dispatch/snapshot.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <unordered_map>
#include <utility>

namespace autotune {

/// Collects the rows of all stores, then lays them out.
class Snapshot::Builder {
public:
    void add(const RecordView& view) {
        const Part& config = part_of(view.config, view.order.config_hash, out_.configs_, [&] {
            // Config hashes leave out the variant.
            return view.config->variant + ' ' + std::string{view.order.config_hash};
        });
        const Part& source = part_of(view.source, view.order.template_hash, out_.sources_,
                                     [&] { return std::string{view.order.template_hash}; });
        // What an application brings along was measured where it was made.
        const bool local = view.order.local && layer_ != Layer::embedded;
        found_.push_back({.problem = problem_of(view),
                          .run = run_of(view),
                          .crc = view.crc,
                          .rank = view.id.rank,
                          .tuned_at = view.tuned_at,
                          .effort = view.effort,
                          .locked_clocks = view.order.locked_clocks,
                          .row = {.config = config.number,
                                  .source = source.number,
                                  .stale = reason_of(view.stale),
                                  .nvrtc_major = static_cast<std::int16_t>(view.id.nvrtc_major),
                                  .nvrtc_minor = static_cast<std::int16_t>(view.id.nvrtc_minor),
                                  .time_ns = view.time_ns,
                                  .default_ns = view.default_ns.value_or(0),
                                  .verified = view.verified,
                                  .imported = !local,
                                  .layer = layer_}});
    }

    /// The addresses of one scan's parts mean nothing in the next.
    void next_scan(Layer layer) {
        parts_.clear();
        recent_.fill({});
        same_problem_ = false;
        layer_ = layer;
    }

    Snapshot finish() {
        for (const Found& found : found_) ++out_.problems_[found.problem].row_count;
        std::uint32_t rows = 0;
        for (Problem& problem : out_.problems_) {
            problem.first_row = rows;
            rows += problem.row_count;
        }
        std::vector<std::uint32_t> order(rows), filled(out_.problems_.size());
        for (std::uint32_t i = 0; i < rows; ++i) {
            const std::uint32_t problem = found_[i].problem;
            order[out_.problems_[problem].first_row + filled[problem]++] = i;
        }
        out_.rows_.reserve(rows);
        for (const Problem& problem : out_.problems_) {
            const auto first = order.begin() + problem.first_row, last = first + problem.row_count;
            if (problem.row_count > 1)
                std::sort(first, last, [this](std::uint32_t a, std::uint32_t b) {
                    return compare(order_of(found_[a]), order_of(found_[b])) < 0;
                });
            for (auto at = first; at != last; ++at) out_.rows_.push_back(found_[*at].row);
        }
        out_.keys_.shrink_to_fit();
        out_.problems_.shrink_to_fit();
        return std::move(out_);
    }

    Snapshot& out() noexcept { return out_; }

private:
    struct Found {
        std::uint32_t problem, run, crc;
        int rank;
        std::int64_t tuned_at;
        SearchEffort effort;
        bool locked_clocks;
        SnapshotRow row;
    };

    OrderKey order_of(const Found& found) const noexcept {
        return {.verified = found.row.verified,
                .fresh = found.row.stale == 0,
                .locked_clocks = found.locked_clocks,
                .effort = found.effort,
                .local = !found.row.imported,
                .layer = static_cast<int>(found.row.layer),
                .time_ns = found.row.time_ns,
                .tuned_at = found.tuned_at,
                .config_hash = config_hashes_[found.row.config],
                .template_hash = source_hashes_[found.row.source],
                .run_uuid = runs_[found.run],
                .rank = found.rank,
                .crc = found.crc};
    }

    /// Rows of one problem follow each other in a scan.
    std::uint32_t problem_of(const RecordView& view) {
        if (!same_problem_ || view.id.problem != problem_id_) {
            problem_ = problem_with(view.problem_key);
            problem_id_ = view.id.problem;
            same_problem_ = true;
        }
        return problem_;
    }

    std::uint32_t problem_with(std::span<const std::byte> key) {
        if (out_.problems_.size() * 2 >= out_.slots_.size()) grow();
        const std::uint64_t hash = hash_bytes(key);
        const auto tag = static_cast<std::uint32_t>(hash >> 32);
        for (std::size_t at = hash & out_.mask_;; at = (at + 1) & out_.mask_) {
            Slot& slot = out_.slots_[at];
            if (slot.problem == no_problem) {
                slot = {tag, static_cast<std::uint32_t>(out_.problems_.size()),
                        static_cast<std::uint32_t>(out_.keys_.size()), static_cast<std::uint32_t>(key.size())};
                out_.problems_.push_back({.key_at = slot.key_at, .key_size = slot.key_size});
                out_.keys_.insert(out_.keys_.end(), key.begin(), key.end());
                hashes_.push_back(hash);
                return slot.problem;
            }
            if (slot.tag == tag && std::ranges::equal(out_.key(out_.problems_[slot.problem]), key)) return slot.problem;
        }
    }

    void grow() {
        out_.slots_.assign(std::max<std::size_t>(16, out_.slots_.size() * 2), Slot{});
        out_.mask_ = out_.slots_.size() - 1;
        for (std::uint32_t i = 0; i < out_.problems_.size(); ++i) {
            const std::uint64_t hash = hashes_[i];
            std::size_t at = hash & out_.mask_;
            while (out_.slots_[at].problem != no_problem) at = (at + 1) & out_.mask_;
            out_.slots_[at] = {static_cast<std::uint32_t>(hash >> 32), i, out_.problems_[i].key_at,
                               out_.problems_[i].key_size};
        }
    }

    /// A part that many rows share: its number here.
    struct Part {
        std::uint32_t number = 0;
    };

    /// What an address led to lately.
    const Part* recent(const void* address) const noexcept {
        const auto& [known, part] = recent_[slot_of(address)];
        return known == address ? part : nullptr;
    }
    static std::size_t slot_of(const void* address) noexcept {
        return reinterpret_cast<std::uintptr_t>(address) / 32 % std::tuple_size_v<decltype(recent_)>;
    }

    /// A scan gives equal parts at one address, so texts are looked at once a part and store, not once a row.
    template <class T, class Name>
    const Part& part_of(const T* address, std::string_view hash, std::vector<T>& values, Name&& name) {
        if (const Part* part = recent(address)) return *part;
        const auto [at, is_new] = parts_.try_emplace(address);
        if (is_new) {
            const auto [number, unknown] = numbers_.emplace(name(), static_cast<std::uint32_t>(values.size()));
            if (unknown) {
                values.push_back(*address);
                hashes_of(values).emplace_back(hash);
            }
            at->second = {number->second};
        }
        recent_[slot_of(address)] = {address, &at->second};
        return at->second;
    }
    std::vector<std::string>& hashes_of(const std::vector<Config>&) noexcept { return config_hashes_; }
    std::vector<std::string>& hashes_of(const std::vector<TemplateIdentity>&) noexcept { return source_hashes_; }

    std::uint32_t reason_of(std::string_view stale) {
        if (stale.empty()) return 0;
        const auto [at, is_new] =
            reasons_.emplace(std::string{stale}, static_cast<std::uint32_t>(out_.reasons_.size()));
        if (is_new) out_.reasons_.emplace_back(stale);
        return at->second;
    }

    std::uint32_t run_of(const RecordView& view) {
        if (const Part* part = recent(view.run)) return part->number;
        const auto [at, is_new] = parts_.try_emplace(view.run);
        if (is_new) {
            at->second.number = static_cast<std::uint32_t>(runs_.size());
            runs_.emplace_back(view.order.run_uuid);
        }
        recent_[slot_of(view.run)] = {view.run, &at->second};
        return at->second.number;
    }

    Snapshot out_;
    Layer layer_ = Layer::project;
    std::vector<Found> found_;
    std::vector<std::uint64_t> hashes_;  ///< of the problems' keys
    std::vector<std::string> config_hashes_, source_hashes_, runs_;
    std::unordered_map<const void*, Part> parts_;  ///< of the store that is being scanned
    std::array<std::pair<const void*, const Part*>, 1024> recent_{};
    bool same_problem_ = false;
    std::int64_t problem_id_ = 0;
    std::uint32_t problem_ = 0;
    std::unordered_map<std::string, std::uint32_t> numbers_, reasons_;
};

Snapshot Snapshot::read(std::span<const LayeredStore> stores, std::string_view op,
                        std::span<const std::string> device_fps, const Today& today) {
    Builder builder;
    for (const LayeredStore& layered : stores) {
        try {
            for (const std::string& fp : device_fps) {
                builder.next_scan(layered.layer);
                layered.store->scan({.op = std::string{op}, .device_fp = fp, .with_problem = false}, today,
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
