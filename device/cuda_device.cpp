#include "device/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "autotune/error.h"
#include "device/compare.h"
#include "device/cuda_launch.h"
#include "device/cuda_timer.h"
#include "device/driver.h"
#include "device/fill.h"
#include "device/guards.h"
#include "device/identity.h"
#include "device/nvml.h"
#include "device/support_math.h"

namespace autotune {
namespace {

constexpr std::uint64_t alignment = 256;
constexpr unsigned support_threads = 256;

/// The device's primary context, current on this thread for the process's life.
class PrimaryContext {
public:
    explicit PrimaryContext(int ordinal) {
        check(driver().cuDeviceGet(&device_, ordinal), "opening GPU {}", ordinal);
        CUcontext context = nullptr;
        check(patiently([&] { return driver().cuDevicePrimaryCtxRetain(&context, device_); }),
              "making a context on GPU {}", ordinal);
        check(driver().cuCtxSetCurrent(context), "entering the context of GPU {}", ordinal);
    }
    ~PrimaryContext() { driver().cuDevicePrimaryCtxRelease(device_); }
    PrimaryContext(const PrimaryContext&) = delete;
    PrimaryContext& operator=(const PrimaryContext&) = delete;

private:
    CUdevice device_ = 0;
};

/// guard | contents | guard in one allocation.
struct Block {
    OwnedMemory memory;
    std::uint64_t base = 0, total = 0, start = 0, bytes = 0;
    std::uint64_t end() const { return start + bytes; }
};

/// Adjacent dimensions that lie one after the other become one: what is contiguous is read without divisions.
support::View view_of(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
    support::View view{
        .type = static_cast<int>(dtype), .rank = 0, .elements = element_count(shape), .extent = {}, .stride = {}};
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const auto extent = static_cast<std::uint64_t>(shape[i]);
        if (extent == 1 && shape.size() > 1) continue;
        const int last = view.rank - 1;
        if (last >= 0 && view.stride[last] == strides[i] * shape[i]) {
            view.extent[last] *= extent;
            view.stride[last] = strides[i];
            continue;
        }
        if (view.rank == support::most_dimensions)
            throw Error{Error::Kind::usage,
                        fmt::format("a tensor has more than {} dimensions", support::most_dimensions)};
        view.extent[view.rank] = extent;
        view.stride[view.rank] = strides[i];
        ++view.rank;
    }
    return view;
}

class CudaDevice : public Device {
public:
    CudaDevice(int ordinal, const Artefact& support)
        : identity_{identify(ordinal)},
          context_{ordinal},
          support_{support, identity_},
          monitor_{GpuMonitor::open(identity_.pci_id)} {
        CUstream stream = nullptr;
        check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
        stream_ = OwnedStream{stream};
        table_ = allocate_raw(normal_table().size_bytes());
        upload(table_.get(), std::as_bytes(normal_table()));
        answer_ = allocate_raw(sizeof(support::Tally));
    }

    const DeviceIdentity& identity() const override { return identity_; }

    Buffer allocate(std::uint64_t bytes, std::uint64_t misalign) override {
        Block block;
        const std::uint64_t front = (guard_bytes + alignment - 1) / alignment * alignment + misalign;
        block.total = front + bytes + guard_bytes;
        block.memory = allocate_raw(block.total);
        block.base = block.memory.get();
        block.start = block.base + front;
        block.bytes = bytes;
        write_guards(block);
        wait("writing guards");
        const Buffer buffer{.address = block.start, .bytes = bytes, .id = next_id_++};
        blocks_.emplace(buffer.id, std::move(block));
        return buffer;
    }
    void release(Buffer buffer) override { blocks_.erase(buffer.id); }

    void write(Buffer buffer, std::uint64_t offset, std::span<const std::byte> bytes) override {
        require_inside(buffer, offset, bytes.size());
        upload(buffer.address + offset, bytes);
    }
    void read(Buffer buffer, std::uint64_t offset, std::span<std::byte> bytes) override {
        require_inside(buffer, offset, bytes.size());
        download(buffer.address + offset, bytes);
        wait("reading a buffer");
    }
    void copy(Buffer to, Buffer from) override {
        require_inside(to, 0, from.bytes);
        if (from.bytes > 0)
            check(driver().cuMemcpyDtoDAsync(to.address, from.address, from.bytes, stream_.get()), "copying {} bytes",
                  from.bytes);
        wait("copying a buffer");
    }
    void set(Buffer buffer, std::uint8_t byte) override {
        if (buffer.bytes > 0)
            check(driver().cuMemsetD8Async(buffer.address, byte, buffer.bytes, stream_.get()), "setting {} bytes",
                  buffer.bytes);
        wait("setting a buffer");
    }

    void fill(Buffer buffer, DType dtype, std::uint64_t elements, const FillSpec& spec) override {
        require_inside(buffer, 0, elements * size_of(dtype));
        if (spec.kind == FillSpec::Kind::zero) {
            if (elements > 0)
                check(driver().cuMemsetD8Async(buffer.address, 0, elements * size_of(dtype), stream_.get()),
                      "zeroing a buffer");
            return wait("zeroing a buffer");
        }
        support::Fill fill = {.kind = static_cast<int>(spec.kind),
                              .type = static_cast<int>(dtype),
                              .seed = spec.seed,
                              .stream = spec.stream,
                              .low = spec.low,
                              .high = spec.high,
                              .modulus = spec.modulus,
                              .elements = elements};
        CUdeviceptr out = buffer.address, table = table_.get();
        launch("autotune_fill", elements, {&out, &fill, &table});
        wait("filling a buffer");
    }

    bool guards_intact(Buffer buffer, std::int64_t& where) override {
        const Block& block = block_of(buffer);
        std::vector<std::byte> before(block.start - block.base), after(block.base + block.total - block.end());
        download(block.base, before);
        download(block.end(), after);
        wait("reading guards");
        const auto change = nearest_change(before, block.base, after, block.end());
        if (!change) return true;
        where = *change;
        write_guards(block);
        wait("mending guards");
        return false;
    }

    Comparison compare(Buffer got, DType dtype, std::span<const std::int64_t> shape,
                       std::span<const std::int64_t> strides, Buffer value, Buffer magnitude, const Bound& bound,
                       std::uint8_t poison) override {
        support::View view = view_of(dtype, shape, strides);
        Comparison result{.elements = view.elements};
        if (view.elements == 0) return result;
        const auto last = static_cast<std::uint64_t>(element_offset(view.elements - 1, shape, strides));
        require_inside(got, 0, (last + 1) * size_of(dtype));
        require_inside(value, 0, view.elements * sizeof(double));
        if (magnitude.address) require_inside(magnitude, 0, view.elements * sizeof(double));

        support::Tally tally{.bad = 0, .still_poison = 0, .not_finite = 0, .first_bad = ~0ULL, .largest_ratio_bits = 0};
        upload(answer_.get(), std::as_bytes(std::span{&tally, 1}));
        support::Limits limits{bound.of_value, bound.of_magnitude, bound.absolute};
        CUdeviceptr got_at = got.address, value_at = value.address, magnitude_at = magnitude.address,
                    answer = answer_.get();
        unsigned poison_byte = poison;
        launch("autotune_compare", view.elements,
               {&got_at, &view, &value_at, &magnitude_at, &limits, &poison_byte, &answer});
        download(answer, std::as_writable_bytes(std::span{&tally, 1}));
        wait("comparing a buffer");

        result.bad = tally.bad;
        result.still_poison = tally.still_poison;
        result.not_finite = tally.not_finite;
        result.largest_ratio = support::double_of(tally.largest_ratio_bits);
        if (result.bad > 0) {
            result.first_bad = tally.first_bad;
            describe_first_bad(result, got, dtype, element_offset(tally.first_bad, shape, strides), value, magnitude,
                               bound);
        }
        return result;
    }

    bool equal(Buffer a, Buffer b) override {
        if (a.bytes != b.bytes) return false;
        if (a.bytes == 0) return true;
        unsigned different = 0;
        upload(answer_.get(), std::as_bytes(std::span{&different, 1}));
        CUdeviceptr left = a.address, right = b.address, answer = answer_.get();
        std::uint64_t bytes = a.bytes;
        launch("autotune_equal", (bytes + 7) / 8, {&left, &right, &bytes, &answer});
        download(answer, std::as_writable_bytes(std::span{&different, 1}));
        wait("comparing two buffers");
        return different == 0;
    }

    Module load(const Artefact& artefact) override {
        const Module module{next_id_++};
        modules_.emplace(module.id, CudaModule{artefact, identity_});
        return module;
    }
    void unload(Module module) override { modules_.erase(module.id); }

    void run(const BoundSequence& bound) override { (void)run_timed(bound); }

    double run_timed(const BoundSequence& bound) override {
        const CudaSequence sequence = prepare(bound);
        sequence.enqueue_once(stream_.get());
        return time_once(stream_.get(), sequence);
    }

    Samples time(std::span<const BoundSequence> rotated, std::span<const Restore> restore,
                 const TimePlan& plan) override {
        if (rotated.empty()) throw Error{Error::Kind::internal, "nothing was given to time"};
        std::vector<CudaSequence> sets;
        for (const BoundSequence& bound : rotated) sets.push_back(prepare(bound));
        std::vector<CudaRestore> restores;
        for (const Restore& one : restore)
            restores.push_back({one.set, one.target.address, one.pristine.address, one.target.bytes});
        return time_sequences(stream_.get(), sets, restores, plan, monitor_.get());
    }

    double copy_bandwidth_gbs() override {
        if (bandwidth_gbs_ == 0) bandwidth_gbs_ = measure_copy();
        return bandwidth_gbs_;
    }

    std::int64_t free_bytes() override {
        std::size_t free = 0, total = 0;
        check(driver().cuMemGetInfo(&free, &total), "asking for free memory");
        return static_cast<std::int64_t>(free);
    }

private:
    static OwnedMemory allocate_raw(std::uint64_t bytes) {
        CUdeviceptr address = 0;
        check(driver().cuMemAlloc(&address, bytes), "allocating {} bytes", bytes);
        return OwnedMemory{address};
    }

    void wait(std::string_view action) { check(driver().cuStreamSynchronize(stream_.get()), "{}", action); }

    void upload(CUdeviceptr to, std::span<const std::byte> bytes) {
        if (!bytes.empty())
            check(driver().cuMemcpyHtoDAsync(to, bytes.data(), bytes.size(), stream_.get()), "writing {} bytes",
                  bytes.size());
        wait("writing a buffer");
    }
    void download(CUdeviceptr from, std::span<std::byte> bytes) {
        if (!bytes.empty())
            check(driver().cuMemcpyDtoHAsync(bytes.data(), from, bytes.size(), stream_.get()), "reading {} bytes",
                  bytes.size());
    }

    /// One of support.cu's kernels over `items`, at most eight blocks an SM.
    void launch(const char* entry, std::uint64_t items, std::vector<void*> arguments) {
        if (items == 0) return;
        const std::uint64_t enough = (items + support_threads - 1) / support_threads;
        const auto blocks = static_cast<unsigned>(
            std::min<std::uint64_t>(enough, 8U * static_cast<unsigned>(identity_.limits.sm_count)));
        check(driver().cuLaunchKernel(support_.function(entry).handle, blocks, 1, 1, support_threads, 1, 1, 0,
                                      stream_.get(), arguments.data(), nullptr),
              "launching '{}'", entry);
    }

    const Block& block_of(Buffer buffer) const {
        const auto found = blocks_.find(buffer.id);
        if (found == blocks_.end()) throw Error{Error::Kind::internal, fmt::format("there is no buffer {}", buffer.id)};
        return found->second;
    }

    static void require_inside(Buffer buffer, std::uint64_t offset, std::uint64_t bytes) {
        if (offset > buffer.bytes || bytes > buffer.bytes - offset)
            throw Error{Error::Kind::internal,
                        fmt::format("{} bytes at {} go beyond a buffer of {}", bytes, offset, buffer.bytes)};
    }

    void write_guards(const Block& block) {
        const auto zone = [&](std::uint64_t start, std::uint64_t end) {
            if (start % 2 == 1) {
                check(driver().cuMemsetD8Async(start, std::to_integer<unsigned char>(guard_byte(start)), 1,
                                               stream_.get()),
                      "writing a guard");
                ++start;
            }
            check(driver().cuMemsetD16Async(start, guard_word, (end - start) / 2, stream_.get()), "writing a guard");
            if ((end - start) % 2 == 1)
                check(driver().cuMemsetD8Async(end - 1, std::to_integer<unsigned char>(guard_byte(end - 1)), 1,
                                               stream_.get()),
                      "writing a guard");
        };
        zone(block.base, block.start);
        zone(block.end(), block.base + block.total);
    }

    void describe_first_bad(Comparison& result, Buffer got, DType dtype, std::int64_t offset, Buffer value,
                            Buffer magnitude, const Bound& bound) {
        std::array<std::byte, 8> element{};
        const std::span bytes = std::span{element}.first(size_of(dtype));
        read(got, static_cast<std::uint64_t>(offset) * size_of(dtype), bytes);
        double terms = std::nan("");
        read(value, result.first_bad * sizeof(double), std::as_writable_bytes(std::span{&result.want, 1}));
        if (magnitude.address)
            read(magnitude, result.first_bad * sizeof(double), std::as_writable_bytes(std::span{&terms, 1}));
        result.got = element_value(bytes, dtype);
        result.bound = allowed_error(result.want, terms, bound);
    }

    CudaSequence prepare(const BoundSequence& bound) {
        const LaunchSequence& plan = *bound.sequence;
        CudaSequence sequence;
        const std::size_t tensors = bound.buffers.size() - plan.scratch.size();
        for (std::size_t i = 0; i < plan.scratch.size(); ++i)
            if (const Buffer scratch = bound.buffers.at(tensors + i); plan.scratch[i].zeroed && scratch.bytes > 0)
                sequence.zeroing.push_back({scratch.address, scratch.bytes});
        for (const SymbolCopy& copy : plan.symbols) {
            const Buffer from = bound.buffers.at(copy.buffer);
            const auto [address, bytes] = module_of(bound, copy.source).symbol(copy.symbol);
            if (from.bytes > bytes)
                throw DeviceFailure{{.kind = DeviceFault::Kind::does_not_fit,
                                     .code = 0,
                                     .message = fmt::format("variable '{}' holds {} bytes, and its tensor has {}",
                                                            copy.symbol, bytes, from.bytes)}};
            (copy.each_launch ? sequence.copies : sequence.once)
                .push_back({address, from.address, from.bytes, copy.symbol});
        }
        for (const Launch& launch : plan.launches)
            sequence.launches.emplace_back(launch, module_of(bound, launch.source).function(launch.entry),
                                           bound.buffers, identity_.limits);
        return sequence;
    }

    CudaModule& module_of(const BoundSequence& bound, const std::string& source) {
        const Module module = bound.module_of(source);
        const auto found = modules_.find(module.id);
        if (found == modules_.end())
            throw Error{Error::Kind::internal, fmt::format("there is no module {}", module.id)};
        return found->second;
    }

    /// The median of copies between pairs of buffers that no cache holds.
    double measure_copy() {
        constexpr std::uint64_t wanted = std::uint64_t{256} << 20;
        constexpr int pairs = 3, rounds = 12;
        const std::uint64_t bytes =
            std::min<std::uint64_t>(wanted, static_cast<std::uint64_t>(free_bytes()) / (4 * pairs)) / 4096 * 4096;
        std::vector<OwnedMemory> memory;
        for (int i = 0; i < 2 * pairs; ++i) {
            memory.push_back(allocate_raw(bytes));
            check(
                driver().cuMemsetD8Async(memory.back().get(), static_cast<unsigned char>(i + 1), bytes, stream_.get()),
                "setting {} bytes", bytes);
        }
        std::vector<OwnedEvent> marks;
        for (int i = 0; i <= rounds; ++i) {
            CUevent event = nullptr;
            check(driver().cuEventCreate(&event, CU_EVENT_DEFAULT), "making an event");
            marks.emplace_back(event);
            check(driver().cuEventRecord(event, stream_.get()), "recording an event");
            const auto pair = static_cast<std::size_t>(i % pairs) * 2;
            if (i < rounds)
                check(driver().cuMemcpyDtoDAsync(memory[pair].get(), memory[pair + 1].get(), bytes, stream_.get()),
                      "copying {} bytes", bytes);
        }
        wait("measuring the copy bandwidth");
        std::vector<double> gbs;
        for (std::size_t i = 1; i < rounds; ++i) {  // the first is a warm-up
            float milliseconds = 0;
            check(driver().cuEventElapsedTime(&milliseconds, marks[i].get(), marks[i + 1].get()),
                  "reading the time between events");
            gbs.push_back(2.0 * static_cast<double>(bytes) / (static_cast<double>(milliseconds) * 1e6));
        }
        std::nth_element(gbs.begin(), gbs.begin() + static_cast<std::ptrdiff_t>(gbs.size() / 2), gbs.end());
        return gbs[gbs.size() / 2];
    }

    // Released in the opposite order: memory and modules before the context.
    DeviceIdentity identity_;
    PrimaryContext context_;
    CudaModule support_;
    std::unique_ptr<GpuMonitor> monitor_;
    OwnedStream stream_;
    OwnedMemory table_, answer_;
    std::unordered_map<std::uint32_t, Block> blocks_;
    std::unordered_map<std::uint32_t, CudaModule> modules_;
    std::uint32_t next_id_ = 1;
    double bandwidth_gbs_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int ordinal, const Artefact& support) {
    return std::make_unique<CudaDevice>(ordinal, support);
}

}  // namespace autotune
