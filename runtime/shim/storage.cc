// Counts the tensor storage that this thread takes from LibTorch's CPU allocator.

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace {

// The allocator reports to the debug info of the thread under the key of the profiler.
struct Reporter final : c10::MemoryReportingInfoBase {
  int64_t allocated = 0;
  int64_t live = 0;
  int64_t peak = 0;

  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
    allocated += std::max<int64_t>(size, 0);
    live += size;
    peak = std::max(peak, live);
  }

  bool memoryProfilingEnabled() const override { return true; }
};

struct Measurement {
  std::shared_ptr<Reporter> reporter = std::make_shared<Reporter>();
  c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, reporter};
};

}  // namespace

extern "C" void* cotangent_storage_begin() noexcept {
  return new Measurement;
}

extern "C" void cotangent_storage_end(void* measurement, int64_t* allocated, int64_t* live, int64_t* peak) noexcept {
  auto* m = static_cast<Measurement*>(measurement);
  *allocated = m->reporter->allocated;
  *live = m->reporter->live;
  *peak = m->reporter->peak;
  delete m;
}
