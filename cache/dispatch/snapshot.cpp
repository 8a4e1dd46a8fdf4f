#include "cache/dispatch/snapshot.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace autotune {

/// Collects the rows of all stores, then lays them out.
class Snapshot::Builder {
public:
    void add(const RecordView& view) {
        if (!same_problem_ || view.id.problem != problem_) begin_problem(view);
        const Part& config = part_of(view.config, view.order.config_hash, out_.configs_, [&] {
            // Config hashes leave out the variant.
            return view.config->variant + ' ' + std::string{view.order.config_hash};
        });
        const Part& source = part_of(view.source, view.order.template_hash, out_.sources_,
                                     [&] { return std::string{view.order.template_hash}; });
        // What an application brings along was measured where it was made.
        const bool local = view.order.local && layer_ != Layer::embedded;
        out_.rows_.push_back({.config = config.number,
                              .source = source.number,
                              .stale = reason_of(view.stale),
                              .nvrtc_major = static_cast<std::int16_t>(view.id.nvrtc_major),
                              .nvrtc_minor = static_cast<std::int16_t>(view.id.nvrtc_minor),
                              .time_ns = view.time_ns,
                              .default_ns = view.default_ns.value_or(0),
                              .verified = view.verified,
                              .imported = !local,
                              .layer = layer_});
        ranked_.push_back({.tuned_at = view.tuned_at,
                           .run = run_of(view),
                           .crc = view.crc,
                           .rank = view.id.rank,
                           .effort = static_cast<std::uint8_t>(view.effort),
                           .locked_clocks = view.order.locked_clocks});
        Entry entry = out_.entry_at(out_.problems_.back().entry_at);
        ++entry.row_count;
        put(out_.problems_.back(), entry);
    }

    /// The addresses of one scan's parts mean nothing in the next.
    void next_scan(Layer layer) {
        parts_.clear();
        recent_.fill({});
        same_problem_ = false;
        layer_ = layer;
    }

    Snapshot finish() {
        if (fill_table() < out_.problems_.size()) gather();
        std::vector<std::uint32_t> order;
        for (const Problem& problem : out_.problems_) {
            const Entry entry = out_.entry_at(problem.entry_at);
            if (entry.row_count < 2) continue;
            order.resize(entry.row_count);
            std::iota(order.begin(), order.end(), entry.first_row);
            std::ranges::sort(
                order, [this](std::uint32_t a, std::uint32_t b) { return compare(order_of(a), order_of(b)) < 0; });
            sorted_.clear();
            for (const std::uint32_t row : order) sorted_.push_back(out_.rows_[row]);
            std::ranges::copy(sorted_, out_.rows_.begin() + entry.first_row);
        }
        // Room that is left over was never touched; to give it back would touch as much again.
        return std::move(out_);
    }

    Snapshot& out() noexcept { return out_; }

private:
    /// What a row's rank hangs on besides what a snapshot keeps of it.
    struct Ranked {
        std::int64_t tuned_at;
        std::uint32_t run, crc;
        int rank;
        std::uint8_t effort;
        bool locked_clocks;
    };

    OrderKey order_of(std::uint32_t number) const noexcept {
        const SnapshotRow& row = out_.rows_[number];
        const Ranked& ranked = ranked_[number];
        return {.verified = row.verified,
                .fresh = row.stale == 0,
                .locked_clocks = ranked.locked_clocks,
                .effort = static_cast<SearchEffort>(ranked.effort),
                .local = !row.imported,
                .layer = static_cast<int>(row.layer),
                .time_ns = row.time_ns,
                .tuned_at = ranked.tuned_at,
                .config_hash = config_hashes_[row.config],
                .template_hash = source_hashes_[row.source],
                .run_uuid = run_at(ranked.run),
                .rank = ranked.rank,
                .crc = ranked.crc};
    }

    void put(const Problem& problem, const Entry& entry) noexcept {
        std::memcpy(out_.entries_.data() + problem.entry_at, &entry, sizeof entry);
    }

    /// Rows of one problem and template follow each other in a scan.
    void begin_problem(const RecordView& view) {
        const Problem problem{static_cast<std::uint32_t>(out_.entries_.size())};
        out_.problems_.push_back(problem);
        out_.entries_.resize(out_.entries_.size() + sizeof(Entry));
        out_.entries_.insert(out_.entries_.end(), view.problem_key.begin(), view.problem_key.end());
        put(problem, {.key_size = static_cast<std::uint32_t>(view.problem_key.size()),
                      .first_row = static_cast<std::uint32_t>(out_.rows_.size())});
        problem_ = view.id.problem;
        same_problem_ = true;
    }

    /// All keys at once: how many there may be is known, and the places of several are fetched together. Returns how
    /// many there are, since another template or database may have a key again.
    std::size_t fill_table() {
        const std::span<const Problem> met = out_.problems_;
        number_of_.resize(met.size());
        if (met.empty()) return 0;
        out_.slots_.assign(std::bit_ceil(std::max<std::size_t>(16, met.size() * 2)), Slot{});
        out_.mask_ = out_.slots_.size() - 1;
        std::uint32_t count = 0;
        std::array<std::uint64_t, 16> hashes;
        for (std::size_t first = 0; first < met.size(); first += hashes.size()) {
            const std::size_t several = std::min(hashes.size(), met.size() - first);
            for (std::size_t i = 0; i < several; ++i) {
                hashes[i] = hash_bytes(out_.key(met[first + i]));
                __builtin_prefetch(&out_.slots_[hashes[i] & out_.mask_], 1);
            }
            for (std::size_t i = 0; i < several; ++i) {
                number_of_[first + i] = place(met[first + i], hashes[i], count);
                if (number_of_[first + i] == count) ++count;
            }
        }
        return count;
    }

    /// The number of the problem of that key: `number` where it is new.
    std::uint32_t place(const Problem& problem, std::uint64_t hash, std::uint32_t number) {
        const auto tag = static_cast<std::uint32_t>(hash >> 32);
        for (std::size_t at = hash & out_.mask_;; at = (at + 1) & out_.mask_) {
            Slot& slot = out_.slots_[at];
            if (slot.entry_at == no_entry) {
                slot = {tag, problem.entry_at};
                return number;
            }
            if (slot.tag == tag && std::ranges::equal(out_.key({slot.entry_at}), out_.key(problem)))
                return number_of_[static_cast<std::size_t>(
                    std::ranges::lower_bound(out_.problems_, slot.entry_at, {}, &Problem::entry_at) -
                    out_.problems_.begin())];
        }
    }

    /// Brings the rows of each problem together.
    void gather() {
        const std::vector<Problem> met = std::exchange(out_.problems_, {});
        std::vector<std::vector<std::uint32_t>> parts;
        for (std::uint32_t i = 0; i < met.size(); ++i) {
            if (number_of_[i] == parts.size()) {
                parts.emplace_back();
                out_.problems_.push_back(met[i]);
            }
            parts[number_of_[i]].push_back(i);
        }
        std::vector<SnapshotRow> rows;
        std::vector<Ranked> ranked;
        rows.reserve(out_.rows_.size());
        ranked.reserve(out_.rows_.size());
        for (std::size_t number = 0; number < parts.size(); ++number) {
            const auto first = static_cast<std::uint32_t>(rows.size());
            for (const std::uint32_t part : parts[number]) {
                const Entry entry = out_.entry_at(met[part].entry_at);
                for (std::uint32_t row = entry.first_row; row < entry.first_row + entry.row_count; ++row) {
                    rows.push_back(out_.rows_[row]);
                    ranked.push_back(ranked_[row]);
                }
            }
            Entry entry = out_.entry_at(out_.problems_[number].entry_at);
            entry.first_row = first;
            entry.row_count = static_cast<std::uint32_t>(rows.size()) - first;
            put(out_.problems_[number], entry);
        }
        out_.rows_ = std::move(rows);
        ranked_ = std::move(ranked);
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

    /// Rows of one run follow each other, if a run has several.
    std::uint32_t run_of(const RecordView& view) {
        const std::string_view uuid = view.order.run_uuid;
        if (runs_.empty() || run_at(run_) != uuid) {
            run_ = static_cast<std::uint32_t>(runs_.size());
            const auto size = static_cast<std::uint32_t>(uuid.size());
            runs_.append(reinterpret_cast<const char*>(&size), sizeof size).append(uuid);
        }
        return run_;
    }
    std::string_view run_at(std::uint32_t at) const noexcept {
        std::uint32_t size = 0;
        std::memcpy(&size, runs_.data() + at, sizeof size);
        return {runs_.data() + at + sizeof size, size};
    }

    Snapshot out_;
    Layer layer_ = Layer::project;
    std::vector<Ranked> ranked_;            ///< one a row
    std::vector<std::uint32_t> number_of_;  ///< which problem each that was met is of
    std::vector<SnapshotRow> sorted_;
    std::vector<std::string> config_hashes_, source_hashes_;
    std::string runs_;  ///< uuids, each after its length
    std::uint32_t run_ = 0;
    std::unordered_map<const void*, Part> parts_;  ///< of the store that is being scanned
    std::array<std::pair<const void*, const Part*>, 1024> recent_{};
    bool same_problem_ = false;
    ProblemRef problem_{};
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
           rows_.capacity() * sizeof(SnapshotRow) + entries_.capacity();
}

}  // namespace autotune
