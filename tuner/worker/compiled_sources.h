#ifndef AUTOTUNE_TUNER_WORKER_COMPILED_SOURCES_H
#define AUTOTUNE_TUNER_WORKER_COMPILED_SOURCES_H

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tuner/worker/compile_pool.h"
#include "tuner/worker/gates.h"

namespace autotune {

/// A config's binaries, or why there are none.
struct BinariesResult {
    std::shared_ptr<const Binaries> binaries;  ///< null: see failure
    Outcome failure;
    std::shared_ptr<const Error> obstacle;  ///< as Compiled's
    double compile_ms = 0;
};

/// Compiles each distinct source once, however many configs and problems ask for it: what is asked for while it is
/// being compiled waits for the same compile, and what was compiled lately is kept.
class CompiledSources {
public:
    /// keep: how many sources' binaries to hold on to.
    explicit CompiledSources(CompilePoolOptions options, std::size_t keep = 256)
        : keep_{keep}, pool_{std::move(options)} {}
    CompilePool& pool() noexcept { return pool_; }
    const CompilePool& pool() const noexcept { return pool_; }

    using Done = std::function<void(BinariesResult)>;
    /// Calls `done` when all sources are compiled, on the pool's thread or, when nothing is to be compiled, here.
    void want(std::vector<SourceSpec> sources, const std::string& arch, Done done, bool urgent = false);
    /// Starts compiling what will be wanted.
    void expect(const std::vector<SourceSpec>& sources, const std::string& arch, bool urgent = false);
    BinariesResult get(std::vector<SourceSpec> sources, const std::string& arch);

    /// Ends what is being compiled and forgets it, so that it is compiled anew where it is asked for again. Whoever
    /// waits for it is told that it failed.
    void abandon();

    /// Asked for each source that is new before it is compiled. Set before the first is wanted.
    using Ready = std::function<std::optional<Artefact>(const SourceSpec& source, const std::string& arch)>;
    void use_ready(Ready ready) { ready_ = std::move(ready); }

private:
    struct Entry;
    using Answer = std::function<void(const Compiled&)>;
    void ask(SourceSpec source, const std::string& arch, bool urgent, Answer answer);
    void forget_oldest();

    std::size_t keep_;
    Ready ready_;
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Entry>> entries_;
    std::uint64_t clock_ = 0;
    CompilePool pool_;  ///< last: its thread, which calls back, ends first
};

}  // namespace autotune
#endif
