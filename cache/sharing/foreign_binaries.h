#ifndef AUTOTUNE_CACHE_SHARING_FOREIGN_BINARIES_H
#define AUTOTUNE_CACHE_SHARING_FOREIGN_BINARIES_H

#include <cstddef>
#include <string>
#include <vector>

#include "cache/sharing/bundle.h"
#include "tuner/model/instance.h"
#include "tuner/model/op_set.h"

namespace autotune {

/// A source that a config needs compiled, as its binary is kept.
struct NeededSource {
    std::string source_key{};  ///< source_key(): a binary's key begins with it
    std::string arch{};        ///< that it is asked for, "sm_90a"
    std::vector<std::string> entries{};
};
/// Of the config and of the default one, which runs where the other cannot; a config that is not valid needs none.
/// cost  SHA-256 over the sources with their headers
std::vector<NeededSource> needed_sources(const Instance& instance, const Config& config);

/// Why a binary of elsewhere is none that a compiler made for a GPU that is known here: its cubin is no ELF file of
/// that architecture, tells of other kernels than its head, or takes more registers, shared memory or threads than
/// such a GPU has. Empty: it may be. What it does when it runs, nobody can tell.
std::string objection(const Binary& binary);

/// Binaries of a bundle, judged.
struct ForeignBinaries {
    std::vector<Binary> needed{};  ///< by a record of the bundle, under the sources of the ops here
    std::size_t left_out = 0;      ///< of other sources or ops
};
/// Throws Error{usage} for a bundle with a binary that there is an objection to, whether a record needs it or not.
ForeignBinaries judged_binaries(const Bundle& bundle, const OpSet& ops);

}  // namespace autotune
#endif
