#include "cache/dispatch/snapshot.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <new>
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
        rows_.push_back({.config = config.number,
                         .provenance = number_of({.source = source.number,
                                                  .stale = reason_of(view.stale),
                                                  .nvrtc_major = static_cast<std::int16_t>(view.id.nvrtc_major),
                                                  .nvrtc_minor = static_cast<std::int16_t>(view.id.nvrtc_minor),
                                                  .verified = view.verified,
                                                  .imported = !local,
                                                  .layer = layer_}) &
                                       SnapshotRow::most_provenances,
                         .time_ns = view.time_ns,
                         .default_ns = view.default_ns.value_or(0)});
        ranked_.push_back({.tuned_at = view.tuned_at,
                           .run = run_of(view),
                           .crc = view.crc,
                           .rank = view.id.rank,
                           .effort = static_cast<std::uint8_t>(view.effort),
                           .locked_clocks = view.order.locked_clocks});
        ++meeting_->met.back().row_count;
    }

    /// The addresses of one scan's parts mean nothing in the next.
    void next_scan(Layer layer) {
        parts_.clear();
        recent_.fill({});
        same_problem_ = false;
        layer_ = layer;
    }

    Snapshot finish() {
        for (auto& [key_size, problems] : by_size_) lay_out(std::move(problems));
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

    /// A problem in one scan and of one template; another may have its key again.
    struct Met {
        std::uint32_t first_row, row_count;
    };
    /// Those whose keys have one length.
    struct Problems {
        PackedKeys keys;
        std::vector<Met> met{};
    };

    OrderKey order_of(std::uint32_t number) const noexcept {
        const SnapshotRow& row = rows_[number];
        const RowProvenance& provenance = out_.provenance(row);
        const Ranked& ranked = ranked_[number];
        return {.verified = provenance.verified,
                .fresh = provenance.stale == 0,
                .locked_clocks = ranked.locked_clocks,
                .effort = static_cast<SearchEffort>(ranked.effort),
                .local = !provenance.imported,
                .layer = static_cast<int>(provenance.layer),
                .time_ns = row.time_ns,
                .tuned_at = ranked.tuned_at,
                .config_hash = config_hashes_[row.config],
                .template_hash = source_hashes_[provenance.source],
                .run_uuid = run_at(ranked.run),
                .rank = ranked.rank,
                .crc = ranked.crc};
    }

    /// Rows of one problem and template follow each other in a scan.
    void begin_problem(const RecordView& view) {
        const std::span<const std::byte> key = view.problem_key;
        if (!meeting_ || meeting_->keys.key_size() != key.size())
            meeting_ = &by_size_.try_emplace(key.size(), Problems{PackedKeys{key.size()}}).first->second;
        meeting_->keys.add(key);
        meeting_->met.push_back({.first_row = static_cast<std::uint32_t>(rows_.size()), .row_count = 0});
        problem_ = view.id.problem;
        same_problem_ = true;
    }

    /// Called with longer keys each time.
    void lay_out(Problems problems) {
        const auto number = static_cast<std::uint32_t>(out_.tables_.size());
        out_.table_of_size_.resize(problems.keys.key_size() + 1, no_table);
        out_.table_of_size_.back() = number;
        std::size_t rows = 0;
        for (const Met& met : problems.met) rows += met.row_count;
        if (!RowTable::fits(problems.keys, rows)) {
            out_.table_of_size_.back() = no_table;
            out_.complete_ = false;
            return;
        }
        RowTable& table = out_.tables_.emplace_back(problems.keys);
        auto repeat = table.repeats().begin();
        for (std::uint32_t key = 0; key < problems.met.size(); ++key) {
            taken_.clear();
            take_rows(problems.met[key]);
            for (; repeat != table.repeats().end() && repeat->first == key; ++repeat) {
                take_rows(problems.met[repeat->number]);
                problems.met[repeat->number].row_count = 0;
            }
            if (taken_.empty()) continue;
            out_.problems_.push_back({number, table.put(key, best_first())});
        }
        table.done();
    }
    void take_rows(const Met& met) {
        for (std::uint32_t row = met.first_row; row < met.first_row + met.row_count; ++row) taken_.push_back(row);
    }
    std::span<const SnapshotRow> best_first() {
        if (taken_.size() == 1) return {&rows_[taken_.front()], 1};
        std::ranges::sort(taken_,
                          [this](std::uint32_t a, std::uint32_t b) { return compare(order_of(a), order_of(b)) < 0; });
        sorted_.clear();
        for (const std::uint32_t row : taken_) sorted_.push_back(rows_[row]);
        return sorted_;
    }

    /// As a rule that of the row before.
    std::uint32_t number_of(const RowProvenance& provenance) {
        auto& known = out_.provenances_;
        if (known.empty() || known[provenance_] != provenance) {
            const auto [at, is_new] =
                provenance_numbers_.try_emplace(provenance, static_cast<std::uint32_t>(known.size()));
            if (is_new) known.push_back(provenance);
            provenance_ = at->second;
        }
        return provenance_;
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
    std::vector<SnapshotRow> rows_;
    std::vector<Ranked> ranked_;               ///< one a row
    std::map<std::size_t, Problems> by_size_;  ///< of their keys
    Problems* meeting_ = nullptr;              ///< where the last one is
    std::vector<std::uint32_t> taken_;         ///< the rows of one problem, by number
    std::vector<SnapshotRow> sorted_;          ///< the same
    std::map<RowProvenance, std::uint32_t> provenance_numbers_;
    std::uint32_t provenance_ = 0;  ///< of the last row
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
        } catch (const std::bad_alloc&) {
            throw;  // half a row may have been taken
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
    std::size_t sum = problems_.capacity() * sizeof(Problem);
    for (const RowTable& table : tables_) sum += table.bytes();
    return sum;
}

}  // namespace autotune
