#include "tuner/worker/compiled_sources.h"

#include <algorithm>
#include <future>
#include <utility>

namespace autotune {

struct CompiledSources::Entry {
    bool done = false;
    Compiled result;
    std::vector<Answer> waiting;
    std::uint64_t used = 0;
};

void CompiledSources::ask(SourceSpec source, const std::string& arch, bool urgent, Answer answer) {
    const std::string key = source.hash() + ' ' + arch;
    std::shared_ptr<Entry> entry;
    bool done = false;
    {
        const std::lock_guard lock{mutex_};
        std::shared_ptr<Entry>& found = entries_[key];
        const bool is_new = !found;
        if (is_new) found = std::make_shared<Entry>();
        entry = found;
        entry->used = ++clock_;
        done = entry->done;
        if (!done) entry->waiting.push_back(answer);
        if (!done && !is_new) return;
    }
    if (done) return answer(entry->result);  // it changes no more
    const auto finish = [this, entry](Compiled result) {
        std::vector<Answer> waiting;
        {
            const std::lock_guard lock{mutex_};
            entry->result = std::move(result);
            entry->done = true;
            waiting.swap(entry->waiting);
            forget_oldest();
        }
        for (const Answer& one : waiting) one(entry->result);
    };
    if (ready_)
        if (std::optional<Artefact> artefact = ready_(source, arch))
            return finish({.ok = true, .artefact = std::move(*artefact), .failure = {}, .obstacle = {}});
    pool_.submit({.source = std::move(source), .arch = arch}, finish, urgent);
}

/// Called with the mutex held. Entries that somebody still waits for stay.
void CompiledSources::forget_oldest() {
    while (entries_.size() > keep_) {
        const auto oldest = std::ranges::min_element(entries_, {}, [](const auto& entry) {
            return entry.second->done ? entry.second->used : ~std::uint64_t{0};
        });
        if (!oldest->second->done) return;
        entries_.erase(oldest);
    }
}

void CompiledSources::abandon() {
    {
        const std::lock_guard lock{mutex_};
        std::erase_if(entries_, [](const auto& entry) { return !entry.second->done; });
    }
    pool_.abandon();
}

void CompiledSources::want(std::vector<SourceSpec> sources, const std::string& arch, Done done, bool urgent) {
    struct Gathering {
        std::mutex mutex;
        std::vector<Compiled> results;
        std::size_t missing = 0;
        std::vector<std::string> names;
        Done done;
    };
    auto gathering = std::make_shared<Gathering>();
    gathering->results.resize(sources.size());
    gathering->missing = sources.size();
    gathering->done = std::move(done);
    for (const SourceSpec& source : sources) gathering->names.push_back(source.source);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        ask(std::move(sources[i]), arch, urgent, [gathering, i](const Compiled& result) {
            {
                const std::lock_guard lock{gathering->mutex};
                gathering->results[i] = result;
                if (--gathering->missing > 0) return;
            }
            BinariesResult all;
            auto binaries = std::make_shared<Binaries>();
            binaries->sources = std::move(gathering->names);
            for (Compiled& one : gathering->results) {
                all.compile_ms += one.milliseconds;
                if (!one.ok && all.failure.ending == Ending::timed) all.failure = one.failure;
                if (one.obstacle) all.obstacle = one.obstacle;
                binaries->artefacts.push_back(std::move(one.artefact));
            }
            if (all.failure.ending == Ending::timed) all.binaries = std::move(binaries);
            gathering->done(std::move(all));
        });
    }
}

void CompiledSources::expect(const std::vector<SourceSpec>& sources, const std::string& arch, bool urgent) {
    for (const SourceSpec& source : sources) ask(source, arch, urgent, [](const Compiled&) {});
}

BinariesResult CompiledSources::get(std::vector<SourceSpec> sources, const std::string& arch) {
    std::promise<BinariesResult> promise;
    want(
        std::move(sources), arch, [&](BinariesResult result) { promise.set_value(std::move(result)); }, true);
    return promise.get_future().get();
}

}  // namespace autotune
