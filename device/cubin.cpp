#include "device/cubin.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "autotune/error.h"

namespace autotune {
namespace {

[[noreturn]] void unreadable(std::string_view why) {
    throw Error{Error::Kind::usage, fmt::format("the cubin cannot be read, since {}", why)};
}

constexpr std::size_t longest_name = 16384;
constexpr std::uint64_t largest_count = 1u << 30;  // keeps every size in an int

/// The file, every access checked.
class Bytes {
public:
    explicit Bytes(std::span<const std::byte> bytes) : bytes_{bytes} {}

    template <class T>
    T at(std::uint64_t offset) const {
        T value;
        std::memcpy(&value, range(offset, sizeof value).data(), sizeof value);
        return value;
    }
    std::span<const std::byte> range(std::uint64_t offset, std::uint64_t size) const {
        if (offset > bytes_.size() || size > bytes_.size() - offset)
            unreadable(fmt::format("{} bytes at {} lie outside its {}", size, offset, bytes_.size()));
        return bytes_.subspan(offset, size);
    }

private:
    std::span<const std::byte> bytes_;
};

struct Section {
    std::string_view name;
    std::uint32_t type = 0, link = 0;
    std::uint64_t offset = 0, size = 0;
};

constexpr std::uint32_t symbol_table = 2, no_bits = 8;

std::string_view text_at(std::span<const std::byte> table, std::uint64_t offset) {
    if (offset >= table.size()) unreadable("a name lies outside its table");
    const char* const start = reinterpret_cast<const char*>(table.data()) + offset;
    const std::size_t room = std::min<std::size_t>(table.size() - offset, longest_name);
    const void* const end = std::memchr(start, 0, room);
    if (!end) unreadable("a name does not end");
    return {start, static_cast<std::size_t>(static_cast<const char*>(end) - start)};
}

std::vector<Section> read_sections(const Bytes& file) {
    const auto table = file.at<std::uint64_t>(0x28);
    const std::uint64_t entry = file.at<std::uint16_t>(0x3a);
    const std::uint64_t count = file.at<std::uint16_t>(0x3c);
    const std::uint64_t names_index = file.at<std::uint16_t>(0x3e);
    if (entry < 64) unreadable("its section headers are too small");
    if (names_index >= count) unreadable("it has no section names");
    file.range(table, count * entry);

    std::vector<Section> sections(count);
    std::vector<std::uint32_t> names(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t at = table + i * entry;
        names[i] = file.at<std::uint32_t>(at);
        sections[i].type = file.at<std::uint32_t>(at + 4);
        sections[i].offset = file.at<std::uint64_t>(at + 0x18);
        sections[i].size = file.at<std::uint64_t>(at + 0x20);
        sections[i].link = file.at<std::uint32_t>(at + 0x28);
    }
    const Section& name_section = sections[names_index];
    if (name_section.type == no_bits) unreadable("its section names are empty");
    const auto name_table = file.range(name_section.offset, name_section.size);
    for (std::uint64_t i = 0; i < count; ++i) sections[i].name = text_at(name_table, names[i]);
    return sections;
}

struct Symbol {
    std::string_view name;
    std::uint64_t size = 0;
    bool kernel = false;
};

std::vector<Symbol> read_symbols(const Bytes& file, const std::vector<Section>& sections) {
    const auto table = std::find_if(sections.begin(), sections.end(),
                                    [](const Section& section) { return section.type == symbol_table; });
    if (table == sections.end()) unreadable("it has no symbols");
    if (table->link >= sections.size() || sections[table->link].type == no_bits)
        unreadable("its symbols have no names");
    const auto names = file.range(sections[table->link].offset, sections[table->link].size);
    constexpr std::uint64_t entry = 24;
    file.range(table->offset, table->size);
    std::vector<Symbol> symbols(table->size / entry);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        const std::uint64_t at = table->offset + i * entry;
        const auto type = file.at<std::uint8_t>(at + 4);
        const auto other = file.at<std::uint8_t>(at + 5);
        constexpr int function = 2, is_entry = 0x10;
        symbols[i] = {.name = text_at(names, file.at<std::uint32_t>(at)),
                      .size = file.at<std::uint64_t>(at + 16),
                      .kernel = (type & 15) == function && (other & is_entry) != 0};
    }
    return symbols;
}

/// Codes of `.nv.info` records that are read here.
enum Attribute : std::uint8_t {
    launch_bound = 0x05,
    required_block = 0x10,
    frame_bytes = 0x11,
    stack_bytes = 0x12,
    parameter_bytes = 0x19,
    registers = 0x2f,
    cluster_shape = 0x3d,
    barrier_count = 0x4c,
    spill_sites = 0x55,
};

/// Calls `visit(code, value, payload)` for each record; unknown ones are the visitor's to skip.
template <class Visit>
void each_attribute(std::span<const std::byte> section, Visit visit) {
    const Bytes bytes{section};
    std::uint64_t at = 0;
    while (at + 4 <= section.size()) {
        const auto format = bytes.at<std::uint8_t>(at);
        const auto code = bytes.at<std::uint8_t>(at + 1);
        const auto value = bytes.at<std::uint16_t>(at + 2);
        at += 4;
        const std::uint64_t length = format == 4 ? value : 0;
        visit(code, value, bytes.range(at, length));
        at += length;
    }
}

std::uint32_t word(std::span<const std::byte> payload, std::size_t index) {
    return Bytes{payload}.at<std::uint32_t>(index * 4);
}

int small(std::uint64_t value) {
    if (value > largest_count) unreadable(fmt::format("a size of {} makes no sense", value));
    return static_cast<int>(value);
}

/// What the module-wide `.nv.info` says by symbol.
struct BySymbol {
    std::unordered_map<std::uint32_t, std::uint32_t> registers, frame, stack;
};

BySymbol read_by_symbol(std::span<const std::byte> section) {
    BySymbol result;
    each_attribute(section, [&](std::uint8_t code, std::uint16_t, std::span<const std::byte> payload) {
        auto* const table = code == registers     ? &result.registers
                            : code == frame_bytes ? &result.frame
                            : code == stack_bytes ? &result.stack
                                                  : nullptr;
        if (table && payload.size() >= 8) (*table)[word(payload, 0)] = word(payload, 1);
    });
    return result;
}

void read_own_attributes(std::span<const std::byte> section, CubinKernel& kernel) {
    each_attribute(section, [&](std::uint8_t code, std::uint16_t value, std::span<const std::byte> payload) {
        const auto shape = [&](std::array<std::uint32_t, 3>& into) {
            if (payload.size() >= 12) into = {word(payload, 0), word(payload, 1), word(payload, 2)};
        };
        if (code == launch_bound) shape(kernel.launch_bound);
        if (code == required_block) shape(kernel.required_block);
        if (code == cluster_shape) shape(kernel.cluster);
        if (code == barrier_count) kernel.barriers = value & 0xff;
        if (code == parameter_bytes) kernel.parameter_bytes = value;
        if (code == spill_sites) kernel.spills = true;
    });
}

int read_cc(const Bytes& file) {
    const auto flags = file.at<std::uint32_t>(0x30);
    const auto abi_version = file.at<std::uint8_t>(8);
    // Toolkit 13 moved the capability one byte up.
    return static_cast<int>(abi_version >= 8 ? flags >> 8 & 0xff : flags & 0xff);
}

}  // namespace

Cubin read_cubin(std::span<const std::byte> bytes) {
    const Bytes file{bytes};
    constexpr std::array<std::uint8_t, 6> magic{0x7f, 'E', 'L', 'F', 2, 1};  // 64 bits, little-endian
    if (bytes.size() < 64 || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
        unreadable("it is no ELF file");
    constexpr int cuda_machine = 190;
    if (file.at<std::uint16_t>(0x12) != cuda_machine) unreadable("it is not for a CUDA device");

    Cubin cubin;
    cubin.cc = read_cc(file);
    const std::vector<Section> sections = read_sections(file);
    std::unordered_map<std::string_view, const Section*> by_name;
    for (const Section& section : sections) by_name.emplace(section.name, &section);
    const auto find = [&](std::string_view name) -> const Section* {
        const auto found = by_name.find(name);
        return found == by_name.end() ? nullptr : found->second;
    };
    const auto contents = [&](const Section& section) {
        return section.type == no_bits ? std::span<const std::byte>{} : file.range(section.offset, section.size);
    };

    BySymbol by_symbol;
    if (const Section* const info = find(".nv.info")) by_symbol = read_by_symbol(contents(*info));
    const std::vector<Symbol> symbols = read_symbols(file, sections);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        const Symbol& symbol = symbols[i];
        if (!symbol.kernel) continue;
        const auto index = static_cast<std::uint32_t>(i);
        const auto of_symbol = [&](const auto& table) {
            const auto found = table.find(index);
            return found == table.end() ? 0 : small(found->second);
        };
        CubinKernel kernel{.symbol = std::string{symbol.name},
                           .registers = of_symbol(by_symbol.registers),
                           .stack_bytes = of_symbol(by_symbol.frame),
                           .deepest_stack_bytes = of_symbol(by_symbol.stack),
                           .code_bytes = symbol.size};
        if (const Section* const shared = find(fmt::format(".nv.shared.{}", symbol.name))) {
            // From 9.0 on the driver's reserved block is part of the section.
            const int reserved = cubin.cc >= 90 ? 1024 : 0;
            kernel.static_shared_bytes = std::max(0, small(shared->size) - reserved);
        }
        if (const Section* const code = find(fmt::format(".text.{}", symbol.name));
            code && contents(*code).size() >= symbol.size)
            kernel.code_offset = code->offset;
        if (const Section* const info = find(fmt::format(".nv.info.{}", symbol.name)))
            read_own_attributes(contents(*info), kernel);
        cubin.kernels.push_back(std::move(kernel));
    }
    if (const Section* const constants = find(".nv.constant3")) cubin.constant_bytes = constants->size;
    for (const std::string_view name : {".nv.global", ".nv.global.init"})
        if (const Section* const globals = find(name))
            cubin.global_bytes += static_cast<std::uint64_t>(small(globals->size));
    return cubin;
}

KernelInfo kernel_info(const CubinKernel& kernel) {
    const auto threads = [](const std::array<std::uint32_t, 3>& shape) {
        const std::uint64_t product = std::uint64_t{shape[0]} * shape[1];
        return product > 1024 || product * shape[2] > 1024 ? 1024 : static_cast<int>(product * shape[2]);
    };
    const int required = threads(kernel.required_block);
    return {.name = kernel.symbol,
            .symbol = kernel.symbol,
            .registers = kernel.registers,
            .static_shared_bytes = kernel.static_shared_bytes,
            .stack_bytes = kernel.stack_bytes,
            .barriers = kernel.barriers,
            .max_threads = required ? required : threads(kernel.launch_bound)};
}

}  // namespace autotune
